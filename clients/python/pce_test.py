"""Tests of pce.py with a server and a cluster of their own.

The variable PCE names the program; without it, it is built from this repository.
"""

import os
import shutil
import socket
import ssl
import subprocess
import sys
import tempfile
import threading
import unittest
import warnings

try:
    import numpy as np
except ImportError:
    print("SKIPPED: numpy is not installed for", sys.executable)
    sys.exit(0)

HERE = os.path.dirname(os.path.abspath(__file__))
sys.dont_write_bytecode = True
sys.path.insert(0, HERE)
import pce  # noqa: E402

COLUMNS = 6
PROGRAM = DIR = MODEL = None


def setUpModule():
    global PROGRAM, DIR, MODEL
    DIR = tempfile.mkdtemp(prefix="pce-client-")
    unittest.addModuleCleanup(shutil.rmtree, DIR, ignore_errors=True)
    PROGRAM = os.environ.get("PCE")
    if not PROGRAM:
        PROGRAM = os.path.join(DIR, "pce")
        subprocess.run(["go", "build", "-o", PROGRAM, "./cmd/pce"], cwd=os.path.join(HERE, "..", ".."), check=True)
    MODEL = train("run", seed=1)


def train(name, seed):
    """Trains a small model on rows whose columns depend on each other."""
    rng = np.random.default_rng(seed)
    rows = (rng.integers(0, 3, (300, 1)) + rng.integers(0, 2, (300, COLUMNS))) % 4
    data = os.path.join(DIR, name + ".csv")
    np.savetxt(data, rows, "%d", ",")
    run("train", "--config", "preset:hclt", "--set", "data.train=" + data, "--set", "data.valid=", "--set", "data.test=",
        "--set", "model.latents=4", "--set", "train.epochs=1", "--threads", "1", "--out", os.path.join(DIR, name))
    return os.path.join(DIR, name, "model.safetensors")


def run(*args, stdin=""):
    done = subprocess.run([PROGRAM, *args], input=stdin, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    if done.returncode:
        raise AssertionError(f"pce {args}: exit {done.returncode}: {done.stderr}")
    return done.stdout


class NAType:
    """Compares as pandas.NA does: the answer is neither true nor false."""

    def __ne__(self, other):
        return self

    def __bool__(self):
        raise TypeError("boolean value of NA is ambiguous")


def text(rows):
    return "".join(",".join("" if np.isnan(x) else str(int(x)) for x in row) + "\n" for row in np.asarray(rows, float))


def numbers(out):
    return np.array([[float(x) for x in line.split(",")] for line in out.splitlines()])


def start(test, *args, env=None):
    """Starts a command and returns its first line. It is ended with the test."""
    process = subprocess.Popen([PROGRAM, *args], stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True,
                               env={**os.environ, **(env or {})})
    add = getattr(test, "addClassCleanup" if isinstance(test, type) else "addCleanup")
    add(process.stdout.close)
    add(process.wait)
    add(process.terminate)
    line = process.stdout.readline().strip()
    if not line:
        raise AssertionError(f"pce {args}: exit {process.wait()}")
    return line


ROWS = np.random.default_rng(7).integers(0, 4, (50, COLUMNS)).astype(float)
ROWS[::3, 1] = np.nan
ROWS[0] = np.nan


class TestServer(unittest.TestCase):
    @classmethod
    def setUpClass(cls):
        model = os.path.join(DIR, "served.safetensors")
        shutil.copy(MODEL, model)
        cls.model = model
        cls.url = start(cls, "serve", "--addr", "127.0.0.1:0", "--model", "m=" + model, "--model-control", "--max-body", "1")

    def setUp(self):
        self.client = pce.Client(self.url, timeout=120)
        self.addCleanup(self.client.close)

    def test_log_prob(self):
        """Log-likelihoods have the bits of pce query loglik, whatever form rows have."""
        want = numbers(run("query", "loglik", "--model", MODEL, "--data", "-", stdin=text(ROWS)))[:, 0]
        self.assertTrue(np.isfinite(want).all() and abs(want[0]) < 1e-6, want)  # the first row is empty: its probability is 1
        masked = np.ma.masked_invalid(ROWS)
        seen = ~np.isnan(ROWS)
        for name, got in {
            "float64": self.client.log_prob("m", ROWS),
            "float32": self.client.log_prob("m", ROWS.astype(np.float32)),
            "big-endian": self.client.log_prob("m", ROWS.astype(">f8")),
            "columns": self.client.log_prob("m", np.asfortranarray(ROWS)),
            "masked": self.client.log_prob("m", masked),
            "observed": self.client.log_prob("m", np.where(seen, ROWS, 1).astype(np.int8), seen),
            "texts": self.client.log_prob("m", np.array([["" if np.isnan(x) else str(int(x)) for x in r] for r in ROWS])),
            "objects": self.client.log_prob("m", np.array([[None if np.isnan(x) else int(x) for x in r] for r in ROWS], object)),
            "pandas.NA": self.client.log_prob("m", np.array([[NAType() if np.isnan(x) else int(x) for x in r] for r in ROWS], object)),
        }.items():
            with self.subTest(name):
                self.assertEqual(got.dtype, np.float64)
                np.testing.assert_array_equal(got, want)
        one = self.client.log_prob("m", ROWS[4])
        self.assertEqual(one.shape, (1,))
        np.testing.assert_array_equal(one, want[4:5])

    def test_masked_kinds(self):
        """Rows with a mask are sent in their dtype, without a warning, also where numpy's fill is more than it holds."""
        want, seen = self.client.log_prob("m", ROWS), ~np.isnan(ROWS)
        for kind in (np.uint8, np.int8, np.uint64, np.float16):
            with self.subTest(kind), warnings.catch_warnings():
                warnings.simplefilter("error")
                rows = np.ma.masked_array(np.where(seen, ROWS, 1).astype(kind), ~seen)
                np.testing.assert_array_equal(self.client.log_prob("m", rows), want)

    def test_masked_and_observed(self):
        """A cell is missing if the mask or observed says so."""
        masked = np.ma.masked_invalid(ROWS)
        seen = np.ones(ROWS.shape, bool)
        seen[:, 4] = False
        both = np.where(seen, ROWS, np.nan)
        np.testing.assert_array_equal(self.client.log_prob("m", masked, seen), self.client.log_prob("m", both))

    def test_masked_inputs(self):
        """What lies below the mask of observed and of further inputs is not sent."""
        hide = np.zeros(ROWS.shape, bool)
        hide[:, 2] = True
        want = self.client.log_prob("m", np.where(hide, np.nan, ROWS))
        every = np.ma.masked_array(np.ones(ROWS.shape, bool), hide)
        for rows in (np.ma.masked_array(ROWS, np.zeros(ROWS.shape, bool)), ROWS):
            np.testing.assert_array_equal(self.client.log_prob("m", rows, every), want)
        given = [self.client.infer("m", ROWS[4:5], query="conditional", inputs={"query_mask": mask})["log_prob"]
                 for mask in (every[4:5], ~hide[4:5])]
        np.testing.assert_array_equal(*given)
        soft = pce.Client(start(self, "serve", "--addr", "127.0.0.1:0", "--model", "m=" + MODEL, "--soft"))
        self.addCleanup(soft.close)
        nothing, low = np.full((1, COLUMNS), np.nan), np.full((1, COLUMNS), 3)
        for kind in (np.int8, np.int64, np.float16, np.float64):
            with self.subTest(kind):
                masked = np.ma.masked_array(low.astype(kind), np.arange(COLUMNS)[None] != 1)
                np.testing.assert_array_equal(soft.log_prob("m", nothing, inputs={"low": masked}),
                                              soft.log_prob("m", nothing, inputs={"low": np.where(masked.mask, np.nan, low)}))

    def test_sample(self):
        """Samples are those of pce query sample, and keep the evidence."""
        want = numbers(run("query", "sample", "--model", MODEL, "-n", "5", "--seed", "3"))
        np.testing.assert_array_equal(self.client.sample("m", 5, seed=3)[0], want)
        got = self.client.sample("m", 4, given=ROWS, seed=9)
        self.assertEqual(got.shape, (len(ROWS), 4, COLUMNS))
        seen = ~np.isnan(ROWS)
        for k in range(4):
            np.testing.assert_array_equal(got[:, k][seen], ROWS[seen])
        np.testing.assert_array_equal(self.client.sample("m", 4, given=ROWS, seed=9), got)
        drawn = self.client.infer("m", query="sample")
        np.testing.assert_array_equal(self.client.sample("m", seed=drawn.parameters["seed"]), drawn["samples"])
        drawn["samples"][:] = 0  # an answer is the caller's own

    def test_infer(self):
        """Every query that the metadata lists can be asked by its name."""
        about = self.client.metadata("m")
        self.assertEqual([c["kind"] for c in about["columns"]], ["discrete"])
        self.assertEqual(about["columns"][0]["repeat"], COLUMNS)
        self.assertIn("sample", [q["name"] for q in about["queries"]])
        answer = self.client.infer("m", ROWS, id="a1", version="1", outputs={"log_prob": np.float32}, timeout=60)
        self.assertEqual((answer.id, answer.model, answer.version), ("a1", "m", "1"))
        self.assertEqual(answer["log_prob"].dtype, np.float32)
        answer = self.client.infer("m", ROWS, query="sample", outputs=["samples"],
                                   parameters={"n_samples": np.int64(2), "seed": np.uint64(5)})
        self.assertEqual(answer.parameters["seed"], 5)
        self.assertEqual(answer["samples"].shape, (len(ROWS), 2, COLUMNS))

    def test_errors(self):
        """Errors carry the server's line and its status."""
        for status, line, call in [
            (400, 'input "x"', lambda: self.client.log_prob("m", np.zeros((2, COLUMNS + 1)))),
            (400, "row 1", lambda: self.client.log_prob("m", [[0] * COLUMNS, [9] * COLUMNS])),
            (400, "nonsense", lambda: self.client.infer("m", ROWS, query="nonsense")),
            (400, "extra", lambda: self.client.infer("m", ROWS, inputs={"extra": np.zeros((len(ROWS), 1))})),
            (400, "what", lambda: self.client.infer("m", ROWS, parameters={"what": 1})),
            (404, "other", lambda: self.client.log_prob("other", ROWS)),
            (404, "a/b?c", lambda: self.client.metadata("a/b?c")),
            (404, '"9"', lambda: self.client.metadata("m", version=9)),
            (413, "body", lambda: self.client.log_prob("m", np.zeros((1 << 15, COLUMNS)))),
            (413, "body", lambda: self.client.log_prob("m", np.zeros((1 << 20, COLUMNS)))),
        ]:
            with self.subTest(line), self.assertRaises(pce.ServerError) as caught:
                call()
            self.assertEqual(caught.exception.status, status)
            self.assertIn(line, str(caught.exception))
        for kind, value in [("complex", np.zeros((1, COLUMNS), complex)), ("date", np.zeros((1, COLUMNS), "M8[s]"))]:
            with self.subTest(kind), self.assertRaisesRegex(TypeError, "x: dtype"):
                self.client.log_prob("m", value)
        for kind in (str, object, "f16"):
            with self.subTest(kind), self.assertRaisesRegex(TypeError, "output log_prob: dtype .*; ask for a bool, integer or float dtype"):
                self.client.infer("m", ROWS, outputs={"log_prob": kind})
        with self.assertRaisesRegex(TypeError, "parameter of type object"):
            self.client.infer("m", ROWS, parameters={"seed": object()})
        self.assertLess(abs(self.client.log_prob("m", ROWS[:1])[0]), 1e-6)  # it answers as before

    def test_nothing(self):
        """No rows have no answers."""
        self.assertEqual(self.client.log_prob("m", np.zeros((0, COLUMNS))).shape, (0,))

    def test_health_and_statistics(self):
        self.assertTrue(self.client.live() and self.client.ready() and self.client.ready("m") and self.client.ready("m", 1))
        self.assertEqual(self.client.server()["name"], "pce")
        rows = self.client.statistics("m")["inference_count"]
        before = self.metric("pce_inference_rows_total", model="m", query="log_prob")
        self.client.log_prob("m", ROWS)
        self.assertEqual(int(self.client.statistics("m")["inference_count"]) - int(rows), len(ROWS))
        self.assertEqual(self.metric("pce_inference_rows_total", model="m", query="log_prob") - before, len(ROWS))
        self.assertEqual([s["name"] for s in self.client.statistics()], ["m"])
        buckets = [s for s in self.client.metrics() if s.name == "pce_inference_duration_seconds_bucket"]
        self.assertEqual(buckets[-1].labels["le"], "+Inf")

    def metric(self, name, **labels):
        return sum(s.value for s in self.client.metrics() if s.name == name and labels.items() <= s.labels.items())

    def test_models(self):
        """Models are listed, leave and come back; a model that was replaced is loaded."""
        other = pce.Client(start(self, "serve", "--addr", "127.0.0.1:0", "--model", "m=" + MODEL, "--model-control"))
        self.addCleanup(other.close)
        self.assertEqual([(m["name"], m["state"]) for m in other.models()], [("m", "READY")])
        other.unload("m")
        self.assertFalse(other.ready("m"))
        self.assertEqual(other.models(ready=True), [])
        with self.assertRaises(pce.ServerError) as caught:
            other.log_prob("m", ROWS)
        self.assertEqual(caught.exception.status, 503)
        other.load("m")
        first = int(other.models()[0]["version"])
        other.load("m")
        self.assertEqual(int(other.models()[0]["version"]), first + 1)
        with self.assertRaises(pce.ServerError) as caught:
            other.load("n")
        self.assertEqual(caught.exception.status, 404)

    def test_token(self):
        url = start(self, "serve", "--addr", "127.0.0.1:0", "--model", "m=" + MODEL, env={"PCE_SERVE_TOKEN": "abc"})
        with pce.Client(url) as client:
            self.assertTrue(client.ready())
            with self.assertRaises(pce.ServerError) as caught:
                client.log_prob("m", ROWS)
            self.assertEqual(caught.exception.status, 401)
        with pce.Client(url, token="abc") as client:
            self.assertEqual(client.log_prob("m", ROWS).shape, (len(ROWS),))
            with self.assertRaises(pce.ServerError) as caught:
                client.unload("m")
            self.assertEqual(caught.exception.status, 403)

    def test_threads(self):
        """Threads share a client; each gets its own answer."""
        want, wrong = self.client.log_prob("m", ROWS), []

        def ask(i):
            for _ in range(5):
                if not np.array_equal(self.client.log_prob("m", ROWS[i:i + 10]), want[i:i + 10]):
                    wrong.append(i)

        threads = [threading.Thread(target=ask, args=(i,)) for i in range(8)]
        for t in threads:
            t.start()
        for t in threads:
            t.join()
        self.assertEqual(wrong, [])

    def test_closed(self):
        with pce.Client(self.url) as client:
            client.live()
        client.close()
        with self.assertRaisesRegex(ValueError, "closed"):
            client.live()
        for url in ("127.0.0.1:8080", "ftp://x", "http://"):
            with self.assertRaisesRegex(ValueError, "want http://"):
                pce.Client(url)

    def test_ports(self):
        """A URL without a port has that of its scheme, whatever its address ends with."""
        for url, host, port in (("http://[::1]", "::1", 80), ("https://[2001:db8::80]/x", "2001:db8::80", 443),
                                ("http://[::1]:8080", "::1", 8080), ("http://localhost", "localhost", 80)):
            with self.subTest(url), pce.Client(url) as client:
                connection = client._connection(1)[0]
                self.assertEqual((connection.host, connection.port), (host, port))


def certificate():
    """Writes a certificate of 127.0.0.1 and its key, and returns their paths."""
    cert, key = os.path.join(DIR, "cert.pem"), os.path.join(DIR, "key.pem")
    subprocess.run(["openssl", "req", "-x509", "-newkey", "ec", "-pkeyopt", "ec_paramgen_curve:P-256", "-nodes", "-subj", "/CN=pce",
                    "-addext", "subjectAltName=IP:127.0.0.1", "-keyout", key, "-out", cert], check=True, stderr=subprocess.DEVNULL)
    return cert, key


@unittest.skipUnless(shutil.which("openssl"), "openssl is not installed")
class TestTLS(unittest.TestCase):
    """Over https a closed connection shows as an error of TLS."""

    @classmethod
    def setUpClass(cls):
        cls.cert, cls.key = certificate()

    def serve(self, port=0):
        """Starts a server that ends with the call of what it returns beside its port."""
        process = subprocess.Popen([PROGRAM, "serve", "--addr", "127.0.0.1:%d" % port, "--model", "m=" + MODEL, "--max-body", "1",
                                    "--max-queue-rows", "100000", "--tls-cert", self.cert, "--tls-key", self.key],
                                   stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True)

        def end():
            process.terminate()
            process.wait()
            process.stdout.close()

        self.addCleanup(end)
        return int(process.stdout.readline().rsplit(":", 1)[1]), end

    def client(self, port):
        client = pce.Client("https://127.0.0.1:%d" % port, timeout=60, ca=self.cert)
        self.addCleanup(client.close)
        return client

    def test_too_large(self):
        """The refusal of a body that is not read to its end is read, of a connection that is new and of one that rested."""
        client = self.client(self.serve()[0])
        for _ in range(2):
            with self.assertRaises(pce.ServerError) as caught:
                client.log_prob("m", np.zeros((1 << 20, COLUMNS)))
            self.assertEqual(caught.exception.status, 413)
            self.assertEqual(client.log_prob("m", ROWS).shape, (len(ROWS),))

    def test_restart(self):
        """A connection of a server that has ended is replaced, whether the request is short or long."""
        port, end = self.serve()
        client = self.client(port)
        client.live()
        for rows in (1, 20000):
            end()
            _, end = self.serve(port)
            self.assertEqual(client.log_prob("m", np.zeros((rows, COLUMNS), np.int8)).shape, (rows,))

    def test_hang_up(self):
        """A server that ends the connection before it is set up is an error of TLS or of the connection."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)

        def hang_up():
            connection, _ = listener.accept()
            connection.recv(1)
            connection.close()  # unread bytes reset it

        thread = threading.Thread(target=hang_up, daemon=True)
        thread.start()
        self.addCleanup(thread.join, 60)
        with self.assertRaises((ConnectionError, ssl.SSLError)):
            self.client(listener.getsockname()[1]).live()


class TestConnection(unittest.TestCase):
    """Servers that behave badly."""

    def server(self, *answers):
        """Answers each request with the next of answers; after b"" it hangs up."""
        listener = socket.create_server(("127.0.0.1", 0))
        self.addCleanup(listener.close)
        self.connections, left = 0, list(answers)

        def serve():
            while left:
                try:
                    connection, _ = listener.accept()
                except OSError:
                    return
                self.connections += 1
                with connection, connection.makefile("rb") as lines:
                    while left:
                        head = list(iter(lines.readline, b"\r\n"))
                        if not head or b"" in head:
                            break
                        answer = left.pop(0)
                        connection.sendall(answer)
                        if b"close" in answer or not answer:
                            break

        thread = threading.Thread(target=serve, daemon=True)
        thread.start()
        client = pce.Client("http://127.0.0.1:%d/" % listener.getsockname()[1], timeout=60)
        self.addCleanup(thread.join, 60)
        self.addCleanup(client.close)
        return client

    OK = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n{}"

    def test_reuse(self):
        client = self.server(self.OK, self.OK, self.OK)
        for _ in range(3):
            client.server()
        self.assertEqual(self.connections, 1)

    def test_hang_up(self):
        """A connection that was closed while it rested is replaced; a new one that is
        closed without an answer is an error."""
        client = self.server(self.OK, b"", self.OK)
        client.server()
        client.server()
        self.assertEqual(self.connections, 2)
        with self.assertRaises(ConnectionError):
            self.server(b"").server()

    def test_damaged(self):
        for answer in (b"HTTP/1.1 200 OK\r\nContent-Length: 9\r\nConnection: close\r\n\r\n{}", b"nonsense\r\nclose\r\n\r\n"):
            with self.subTest(answer), self.assertRaises(ConnectionError):
                self.server(answer).server()

    def test_refusals(self):
        head = b"HTTP/1.1 429 Too Many Requests\r\nRetry-After: 3\r\nContent-Length: %d\r\n\r\n%s"
        for body, line in ((b'{"error": "full"}', "full"), (b"<html>", "429 Too Many Requests: <html>"), (b"", "429 Too Many Requests")):
            with self.subTest(line), self.assertRaises(pce.ServerError) as caught:
                self.server(head % (len(body), body)).server()
            self.assertEqual((caught.exception.status, caught.exception.retry_after, str(caught.exception)), (429, 3, line))
        with self.assertRaises(pce.ServerError):
            self.server(b"HTTP/1.1 302 Found\r\nLocation: http://example.org/\r\nContent-Length: 0\r\n\r\n").server()

    def test_bad_tensors(self):
        """Lengths that contradict each other are an error, not an array of something."""
        for shape, size, raw in (("[2]", 8, b"\0" * 8), ("[1]", 8, b"\0" * 7), ("[1]", 16, b"\0" * 16)):
            text = b'{"outputs":[{"name":"y","datatype":"FP64","shape":%s,"parameters":{"binary_data_size":%d}}]}' % (shape.encode(), size)
            body = text + raw
            answer = b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\nInference-Header-Content-Length: %d\r\n\r\n%s" % (len(body), len(text), body)
            with self.subTest(shape), self.assertRaisesRegex(pce.Error, "'y'"):
                self.server(answer).infer("m")


class TestCluster(unittest.TestCase):
    def test_job(self):
        """A job is submitted, seen through and fetched."""
        url = os.path.join(DIR, "url")
        self.assertIn("cluster ready", start(self, "cluster", "up", "--dir", os.path.join(DIR, "cluster"), "--workers", "1", "--url-file", url))
        cluster, config = pce.Cluster("@" + url, pce=PROGRAM), os.path.join(DIR, "job.yaml")
        with open(config, "w") as f:
            f.write("name: job\nmodel: {latents: 2}\ndata: {train: %s}\ntrain: {epochs: 9}\n" % os.path.join(DIR, "run.csv"))
        ended = cluster.submit(config, set=["train.epochs=1"], wait=True, timeout=300)
        self.assertEqual((ended["state"], ended["kind"], ended["code"]), ("done", "train", 0))
        self.assertLess(ended["train_ll"], 0)
        status = cluster.status()
        self.assertEqual(len(status["workers"]), 1)
        self.assertEqual([job["run"] for job in status["jobs"]], [ended["run"]])
        self.assertEqual((status["run"], status["dead_letters"]), (ended["run"], []))
        cluster.fetch(ended["run"], os.path.join(DIR, "fetched"))
        self.assertTrue(os.path.exists(os.path.join(DIR, "fetched", "model.safetensors")))
        with self.assertRaises(pce.CommandError) as caught:
            cluster.submit(config, set=["train.epoch=1"])
        self.assertEqual(caught.exception.code, 2)
        self.assertIn("train.epoch", str(caught.exception))
        with self.assertRaises(pce.CommandError):
            cluster.cancel("nonsense")


if __name__ == "__main__":
    unittest.main(verbosity=2)
