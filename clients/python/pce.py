"""A client of pce: questions to a server, and jobs for a cluster.

It is one file that needs numpy and Python 3.9 or newer: copy it where you want it. The
server, `pce serve`, speaks version 2 of the Open Inference Protocol; docs/serving.md
lists its queries, tensors and parameters.

    import numpy as np, pce

    with pce.Client("http://127.0.0.1:8080") as client:
        ll = client.log_prob("digits", images)             # [N] float64, in nats
        new = client.sample("digits", 16, seed=7)          # [1, 16, V]
        rest = client.sample("digits", 4, given=halves)    # [N, 4, V]
        answer = client.infer("digits", halves, query="sample", parameters={"n_samples": 2})
        answer["samples"], answer.parameters["seed"]

Rows are arrays [N, V]; one row may be [V]. NaN, and the cells that a numpy masked array
masks, are missing: the server marginalises them. Tensors travel in binary form.

A failed call raises ServerError with the server's own line, or OSError (ConnectionError,
TimeoutError) if there was no answer. A Client may be used by several threads.
"""

import http.client
import json
import re
import ssl
import subprocess
import threading
from urllib.parse import quote, urlsplit

import numpy as np

__all__ = ["Answer", "Client", "Cluster", "CommandError", "Error", "Sample", "ServerError"]


class Error(Exception):
    """The base of the errors of this module."""


class ServerError(Error):
    """The server refused a request; str() of it is the server's line.

    status is the HTTP status (docs/serving.md lists them). retry_after is the number of
    seconds after which the server would like to be asked again, or None.
    """

    def __init__(self, status, message, retry_after=None):
        super().__init__(message)
        self.status, self.retry_after = status, retry_after


class CommandError(Error):
    """The command pce failed; code is its exit code, str() of it what it said last."""

    def __init__(self, code, message):
        super().__init__(message)
        self.code = code


class Answer:
    """The answer to a query: answer["name"] is an output.

    outputs      arrays by name
    parameters   of the answer, such as the seed that was used
    model, version, id   as the server names them; id is that of the request
    """

    def __init__(self, head, outputs):
        self.outputs, self.parameters = outputs, head.get("parameters", {})
        self.model, self.version, self.id = head.get("model_name"), head.get("model_version"), head.get("id")

    def __getitem__(self, name):
        return self.outputs[name]


class Sample:
    """A line of the metrics: its name, its labels as a dict and its value."""

    def __init__(self, name, labels, value):
        self.name, self.labels, self.value = name, labels, value

    def __repr__(self):
        return f"Sample({self.name!r}, {self.labels!r}, {self.value!r})"


class Client:
    """A client of one server. Connections are kept and used again until close().

    url          http://HOST:PORT or https://HOST:PORT
    token        the server's bearer token, if it wants one
    timeout      seconds that connecting, sending and each wait for an answer may take
    ca           PEM file of those who signed the server's certificate; None: the system's
    """

    def __init__(self, url="http://127.0.0.1:8080", *, token=None, timeout=60.0, ca=None):
        parts = urlsplit(url)
        if parts.scheme not in ("http", "https") or not parts.hostname:
            raise ValueError(f"url {url!r}; want http://HOST:PORT or https://HOST:PORT")
        # Without a port http.client would take the end of an IPv6 address for one.
        port = (443 if parts.scheme == "https" else 80) if parts.port is None else parts.port
        self._host, self._port, self._path = parts.hostname, port, parts.path.rstrip("/")
        self._tls = ssl.create_default_context(cafile=ca) if parts.scheme == "https" else None
        self._headers = {"Authorization": f"Bearer {token}"} if token else {}
        self._timeout = timeout
        self._lock, self._idle, self._closed = threading.Lock(), [], False

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()

    def close(self):
        """Closes the connections. Calls under way end; later ones raise ValueError."""
        with self._lock:
            idle, self._idle, self._closed = self._idle, [], True
        for connection in idle:
            connection.close()

    # Health and metadata.

    def live(self):
        """Whether the server answers."""
        return self._healthy("/v2/health/live")

    def ready(self, model=None, version=None):
        """Whether the server, or a model of it, answers queries."""
        return self._healthy("/v2/health/ready" if model is None else _path(model, version) + "/ready")

    def server(self):
        """Name, version and extensions of the server."""
        return self._json("GET", "/v2")

    def metadata(self, model, version=None):
        """What a model is: inputs, outputs, columns, and its queries with their parameters."""
        return self._json("GET", _path(model, version))

    # Queries.

    def infer(self, model, x=None, *, query=None, observed=None, inputs=None, outputs=None,
              parameters=None, version=None, id=None, timeout=None):
        """Asks a model; returns an Answer.

        x            rows [N, V] of numbers, or of texts as in a CSV file
        query        one of metadata(model)["queries"]; None: the model's first
        observed     bool [N, V]; cells that are False, or masked, are missing, whatever x says
        inputs       further tensors of the query, by name; masked numbers are NaN, masked bools False
        outputs      names of the outputs wanted, or a dict from a name to a dtype for it;
                     None: the query's usual ones
        parameters   of the query, such as {"n_samples": 4, "seed": 7}
        timeout      seconds that the server may take, after which it refuses with 504
        """
        tensors = {}
        if x is not None:
            if isinstance(x, np.ma.MaskedArray):
                seen = ~np.ma.getmaskarray(x)
                x = x.filled(np.zeros((), x.dtype))  # numpy's own fill, 999999 or 1e20, may be more than the dtype holds
                observed = seen if observed is None else seen & np.ma.filled(observed, False).astype(bool)
            tensors["x"] = np.atleast_2d(np.asarray(x))
        if observed is not None:
            tensors["observed"] = np.atleast_2d(np.asarray(np.ma.filled(observed, False), bool))
        for name, value in (inputs or {}).items():
            tensors[name] = _unmasked(value)
        head = {"parameters": {**(parameters or {}), "binary_data_output": True}, "inputs": []}
        if query is not None:
            head["parameters"]["query"] = query
        if timeout is not None:
            head["parameters"]["timeout"] = max(1, int(timeout * 1e6))
        if id is not None:
            head["id"] = id
        if outputs is not None:
            types = outputs if isinstance(outputs, dict) else dict.fromkeys(outputs)
            head["outputs"] = [{"name": name, **({"parameters": {"datatype": _datatype(f"output {name}", np.dtype(t))}} if t else {})}
                               for name, t in types.items()]
        body = [b""]
        for name, value in tensors.items():
            datatype, raw = _encode(name, value)
            head["inputs"].append({"name": name, "datatype": datatype, "shape": list(value.shape),
                                   "parameters": {"binary_data_size": len(raw)}})
            body.append(raw)
        body[0] = json.dumps(head, default=_plain, allow_nan=False).encode()
        body[0] += b" " * (-len(body[0]) % 8)  # the server reads aligned tensors where they lie
        headers = {"Content-Type": "application/octet-stream", "Inference-Header-Content-Length": str(len(body[0]))}
        # The server's refusal should arrive before this side gives up.
        wait = None if timeout is None else max(self._timeout or 0, timeout + 5)
        got, raw = self._call("POST", _path(model, version) + "/infer", body, headers, wait)
        return _decode(raw, got.getheader("Inference-Header-Content-Length"))

    def log_prob(self, model, x, observed=None, **options):
        """Log-likelihoods of rows, [N] float64 in nats; missing cells are marginalised."""
        return self.infer(model, x, query="log_prob", observed=observed, outputs={"log_prob": np.float64}, **options)["log_prob"]

    def sample(self, model, n=1, *, given=None, observed=None, seed=None, **options):
        """Samples [N, n, V]: n for each row of given, whose observed cells they keep, or
        for one empty row. Equal seeds give equal samples, whatever else the server does.
        """
        parameters = {"n_samples": n, **({} if seed is None else {"seed": seed})}
        return self.infer(model, given, query="sample", observed=observed, parameters=parameters, **options)["samples"]

    # Statistics and models.

    def statistics(self, model=None, version=None):
        """Counts and durations of a model's requests, or a list of those of all models."""
        if model is None:
            return self._json("GET", "/v2/models/stats")["model_stats"]
        return self._json("GET", _path(model, version) + "/stats")["model_stats"][0]

    def metrics(self):
        """The server's Prometheus metrics, as a list of Samples."""
        text = bytes(self._call("GET", "/metrics")[1]).decode()
        found = [_METRIC.fullmatch(line) for line in text.splitlines() if line and not line.startswith("#")]
        return [Sample(m[1], {name: _ESCAPE.sub(_unescape, value) for name, value in _LABEL.findall(m[2] or "")}, float(m[3]))
                for m in found if m]

    def models(self, ready=False):
        """The repository's index: name, version, state and reason of each model; only
        those that are in memory if ready is True."""
        return self._json("POST", "/v2/repository/index", {"ready": ready})

    def load(self, model):
        """Loads a model, again if it is in memory; the server needs --model-control.

        A file that was replaced is loaded within a second without this call, and no
        request is lost either way.
        """
        self._json("POST", f"/v2/repository/models/{quote(model, safe='')}/load", {})

    def unload(self, model):
        """Lets a model leave memory until load(); the server needs --model-control."""
        self._json("POST", f"/v2/repository/models/{quote(model, safe='')}/unload", {})

    # HTTP.

    def _healthy(self, path):
        try:
            self._call("GET", path)
        except ServerError as err:
            if err.status == 503:
                return False
            raise
        return True

    def _json(self, method, path, value=None):
        body = [] if value is None else [json.dumps(value).encode()]
        return json.loads(self._call(method, path, body, {"Content-Type": "application/json"})[1])

    def _call(self, method, path, body=(), headers=None, timeout=None):
        """Sends a request and returns the response with its body."""
        headers = {**self._headers, **(headers or {}), "Content-Length": str(sum(map(len, body)))}
        timeout = self._timeout if timeout is None else timeout
        while True:
            connection, used = self._connection(timeout)
            try:
                if not used:
                    connection.connect()
                try:
                    connection.request(method, self._path + path, iter(body), headers)
                except (BrokenPipeError, ConnectionResetError, *_CLOSED_TLS):
                    pass  # a body that is too large is refused before it was sent; the answer says so
                response = connection.getresponse()
                raw = response.read()
            except (ConnectionError, *_CLOSED_TLS, http.client.CannotSendRequest):
                connection.close()
                # The server may close a connection that rests, just as it is used again.
                # Asking twice changes nothing: a query leaves no trace but a count.
                if used:
                    continue
                raise
            except http.client.HTTPException as err:
                connection.close()
                raise ConnectionError(f"{method} {path}: the answer is cut short or not HTTP: {err!r}") from err
            except BaseException:
                connection.close()
                raise
            self._rest(connection, response)
            if response.status >= 300:
                raise _refusal(response, raw)
            return response, raw

    def _connection(self, timeout):
        with self._lock:
            if self._closed:
                raise ValueError("the client is closed")
            connection = self._idle.pop() if self._idle else None
        if connection is not None and connection.sock is not None:
            connection.sock.settimeout(timeout)
            return connection, True
        if self._tls:
            return http.client.HTTPSConnection(self._host, self._port, timeout=timeout, context=self._tls), False
        return http.client.HTTPConnection(self._host, self._port, timeout=timeout), False

    def _rest(self, connection, response):
        with self._lock:
            if not response.will_close and not self._closed:
                self._idle.append(connection)
                return
        connection.close()


# What a TLS connection raises that the other side has closed, beside a ConnectionError.
_CLOSED_TLS = (ssl.SSLEOFError, ssl.SSLZeroReturnError)

_METRIC = re.compile(r"([a-zA-Z_:][\w:]*)(?:\{(.*)\})? (\S+)")
_LABEL = re.compile(r'(\w+)="((?:[^"\\]|\\.)*)"')
_ESCAPE = re.compile(r"\\(.)")


def _unescape(match):
    return "\n" if match[1] == "n" else match[1]


def _path(model, version):
    path = "/v2/models/" + quote(model, safe="")
    return path if version is None else f"{path}/versions/{quote(str(version), safe='')}"


def _refusal(response, raw):
    try:
        message = json.loads(raw)["error"]
    except (ValueError, KeyError, TypeError):  # something in between answered
        message = f"{response.status} {response.reason}: {raw[:200].decode(errors='replace')}".rstrip(": ")
    after = response.getheader("Retry-After")
    return ServerError(response.status, message, int(after) if after and after.isdigit() else None)


# Tensors.

_DATATYPES = {"?": "BOOL", "u1": "UINT8", "u2": "UINT16", "u4": "UINT32", "u8": "UINT64", "i1": "INT8", "i2": "INT16",
              "i4": "INT32", "i8": "INT64", "f2": "FP16", "f4": "FP32", "f8": "FP64"}
_DTYPES = {datatype: np.dtype(code).newbyteorder("<") for code, datatype in _DATATYPES.items()}


def _datatype(of, dtype, wanted="ask for a bool, integer or float dtype"):
    """The protocol's name of the numpy dtype of a tensor."""
    name = _DATATYPES.get("?" if dtype.kind == "b" else f"{dtype.kind}{dtype.itemsize}")
    if name is None:
        raise TypeError(f"{of}: dtype {dtype} has no datatype of numbers in the protocol; {wanted}")
    return name


def _unmasked(value):
    """The array of a further input. What lies below a mask is not meant: masked numbers are NaN, masked bools false, masked texts empty."""
    if not np.ma.is_masked(value):
        return np.asarray(value)
    if value.dtype.kind in "iu":
        value = value.astype(np.float64)
    return value.filled({"b": False, "S": b"", "U": "", "O": None}.get(value.dtype.kind, np.nan))


def _missing(cell):
    """Whether an object is a missing cell: None, NaN, or pandas.NA, of which it cannot be asked whether it equals itself."""
    return cell is None or type(cell).__name__ == "NAType" or cell != cell


def _encode(name, value):
    """The datatype of an array and its bytes, little-endian and row-major."""
    if value.dtype.kind in "OSU":
        raw = bytearray()
        for cell in value.flat:
            text = cell if isinstance(cell, bytes) else b"" if _missing(cell) else str(cell).encode()
            raw += len(text).to_bytes(4, "little") + text
        return "BYTES", raw
    datatype = _datatype(name, value.dtype, "convert to a bool, integer, float or text dtype")
    return datatype, np.ascontiguousarray(value, _DTYPES[datatype]).tobytes()


def _decode(raw, header):
    """The Answer in the body of a response."""
    at = len(raw) if header is None else int(header)
    head, outputs = json.loads(raw[:at]), {}
    for t in head["outputs"]:
        shape, name = t["shape"], t["name"]
        size = t.get("parameters", {}).get("binary_data_size")
        if size is None or t["datatype"] not in _DTYPES:
            raise Error(f"output {name!r} is {t['datatype']}, binary_data_size {size}; this client reads binary numbers")
        dtype = _DTYPES[t["datatype"]]
        count = int(np.prod(shape, dtype=np.int64))
        if size != count * dtype.itemsize or at + size > len(raw):
            raise Error(f"output {name!r} of shape {shape} has {min(size, len(raw) - at)} bytes, want {count * dtype.itemsize}")
        outputs[name] = np.frombuffer(raw, dtype, count, at).reshape(shape).astype(dtype.newbyteorder("="))
        at += size
    return Answer(head, outputs)


def _plain(value):
    """What numpy's scalars are in JSON."""
    if isinstance(value, np.generic):
        return value.item()
    raise TypeError(f"parameter of type {type(value).__name__}; want a bool, a number or a text")


class Cluster:
    """Jobs of a cluster, through the command pce.

    cluster   URL of the broker, or "@FILE" as `pce cluster up --url-file FILE` wrote it
    pce       the command, or the list of its first arguments
    """

    def __init__(self, cluster, *, pce="pce"):
        self._flags, self._pce = ["--cluster", cluster], [pce] if isinstance(pce, str) else list(pce)

    def submit(self, config, *, set=(), wait=False, timeout=None):
        """Queues the job that a config file describes; returns what `pce cluster submit
        --json` prints: run is the id, state how far it is. wait=True returns at its end.

        set holds further settings such as "train.epochs=3", timeout seconds.
        """
        args = ["--config", config, *(a for s in set for a in ("--set", s)), *(["--wait"] if wait else [])]
        return json.loads(self._run("submit", args + ["--json"], timeout).splitlines()[-1])

    def status(self, timeout=None):
        """What `pce cluster status --json` prints, as a dict: "workers"; "jobs", those of the
        queue and all that were taken from it, oldest first; "dead_letters"; and how far the
        run is that has the lead, or had it last ("run", "state", "epoch", "train_ll", ...)."""
        return json.loads(self._run("status", ["--json"], timeout).splitlines()[-1])

    def cancel(self, run, timeout=None):
        """Cancels a run."""
        self._run("cancel", [run], timeout)

    def fetch(self, run, directory, timeout=None):
        """Copies the files of a run to a directory."""
        self._run("fetch", [run, directory], timeout)

    def _run(self, command, args, timeout):
        done = subprocess.run([*self._pce, "cluster", command, *self._flags, *map(str, args)], stdin=subprocess.DEVNULL,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, timeout=timeout)
        if done.returncode:
            said = [line for line in done.stderr.splitlines() if line and not line.startswith("run '")]  # a hint on usage
            raise CommandError(done.returncode, said[-1] if said else f"pce cluster {command} said nothing")
        return done.stdout
