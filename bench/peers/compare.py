"""Runs peers and pce in turn and prints JSON lines: see bench/peers.sh."""
import json, os, statistics, subprocess, sys, tempfile, time

pce, rounds, sources = sys.argv[1], int(sys.argv[2]), sys.argv[3:]
here = os.path.dirname(os.path.abspath(__file__))
HMM = "{structure: hmm, latents: %d, leaf: {type: categorical, categories: 256}, hmm: {length: 32, tied: true}}"
TOKENS = "builtin:random?rows=4096&vars=32&categories=256"
PD = "{structure: pd, latents: %d, leaf: {type: bernoulli}, pd: {split_interval: 7, max_product_blocks: 1000, shape: [28, 28, 1]}}"
BITS = "builtin:random?rows=4096&vars=784&categories=2"
HCLT = "{structure: hclt, latents: %d, leaf: {type: bernoulli}}"
# Peer, its size, rows per step of the peer (pce's steps have 512), steps of the peer and of pce, pce's circuit and rows
CASES = [
    ("numpy", 64, 512, 10, 100, HMM, TOKENS), ("numpy", 256, 512, 5, 30, HMM, TOKENS),
    ("hmmlearn", 64, 64, 3, 100, HMM, TOKENS), ("hmmlearn", 256, 16, 1, 30, HMM, TOKENS),
    ("einsum", 10, 100, 10, 30, PD, BITS), ("einsum", 20, 100, 5, 20, PD, BITS),
    ("spflow", 32, 512, 5, 200, HCLT, "builtin:random?rows=4096&vars=16&categories=2"),
]
WARM = 3  # steps of pce that are not counted


def config(model, latents, data, rows, folder):
    name = os.path.join(folder, "config.yaml")
    with open(name, "w") as f:
        f.write(f"name: peer\nprecision: fp32\nmodel: {model % latents}\ndata: {{train: '{data}'}}\n"
                f"train: {{rule: minibatch-em, epochs: 1, batch_size: {rows}, samples: 0}}\n")
    return name


def edges(model, latents, data, folder):
    out = subprocess.run([pce, "info", "--config", config(model, latents, data, 512, folder), "--json"], capture_output=True, text=True)
    if out.returncode != 0:
        sys.exit(f"pce info of {model % latents} ended with exit code {out.returncode}: {out.stderr.strip()}")
    return json.loads(out.stdout)["sum_edges"]


def equal_edges(model, data, want, folder):
    """The latents whose sum edges come nearest to want, and these edges."""
    return min(((k, edges(model, k, data, folder)) for k in (4, 8, 12, 16, 24, 32, 48, 64, 96, 128, 192, 256)), key=lambda ke: abs(ke[1] / want - 1))


def bench(name, steps):
    """CPU seconds and peak memory in MiB of a run of that many steps."""
    with tempfile.TemporaryFile() as said:
        child = subprocess.Popen([pce, "bench", "--config", name, "--threads", "1", "--warmup", str(WARM), "--steps", str(steps), "--json"],
                                 stdout=subprocess.DEVNULL, stderr=said)
        _, status, used = os.wait4(child.pid, 0)
        child.returncode = os.waitstatus_to_exitcode(status)
        if child.returncode != 0:  # of a config that is gone when this program ends
            said.seek(0)
            sys.exit(f"pce bench ended with exit code {child.returncode}: {said.read().decode(errors='replace').strip()}")
    return used.ru_utime + used.ru_stime, used.ru_maxrss // 1024


def ours(name, steps):
    """CPU seconds of a step, and peak memory: the time of a run of one step is subtracted, and with it all but steps."""
    (long, memory), (short, _) = bench(name, 1 + steps), bench(name, 1)
    return (long - short) / steps, memory


os.environ.setdefault("OMP_NUM_THREADS", "1")
os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
with open("/proc/cpuinfo") as f:
    info = f.read()
if "avx512f" in info:  # OpenBLAS before 0.3.22 takes SSE kernels on processors that it does not know
    os.environ.setdefault("OPENBLAS_CORETYPE", "SkylakeX")
cpu = next(line.split(":", 1)[1].strip() for line in info.splitlines() if line.startswith("model name"))
lscpu = subprocess.run(["lscpu", "--json"], capture_output=True, text=True, env={**os.environ, "LC_ALL": "C"})
about = {e["field"].rstrip(":"): e["data"] for e in json.loads(lscpu.stdout)["lscpu"] if "data" in e} if lscpu.returncode == 0 else {}
about = {k: about[k] for k in ("Model name", "CPU family", "Model", "Stepping", "CPU(s)", "L2 cache", "L3 cache") if k in about}
print(json.dumps({"date": time.strftime("%Y-%m-%d"), "lscpu": about, "cpu": cpu, "cores": os.cpu_count(), "threads": 1, "rounds": rounds, "load": os.getloadavg()[0],
                  "pce": subprocess.run([pce, "version"], capture_output=True, text=True).stdout.strip()}), flush=True)
with tempfile.TemporaryDirectory() as folder:
    for who, size, rows, steps, mine, model, data in CASES:
        seen, our, latents, said = [], [], size, {}
        for _ in range(rounds):
            out = subprocess.run([sys.executable, os.path.join(here, "peers.py"), who, str(size), str(rows), str(steps), *sources], capture_output=True, text=True)
            if out.returncode != 0:
                why = (out.stdout.strip() or out.stderr.strip() or "no message").splitlines()[-1]
                print(json.dumps({"who": who, "size": size, "missing": why}), flush=True)
                break
            peer = json.loads(out.stdout)
            print(json.dumps(peer), flush=True)
            if "edges" in peer and not said:
                latents, count = equal_edges(model, data, peer["edges"], folder)
                said = {"peer_edges": peer["edges"], "pce_edges": count, "pce_latents": latents}
            one, memory = ours(config(model, latents, data, 512, folder), mine)
            one *= 1000 / 512
            print(json.dumps({"who": "pce", "beside": who, "size": latents, "rows": 512, "cpu_seconds_per_1k_rows": one, "mib": memory}), flush=True)
            seen.append(peer["cpu_seconds_per_1k_rows"])
            our.append(one)
        else:
            p, o = statistics.median(seen), statistics.median(our)
            print(json.dumps({"who": who, "size": size, **said, "peer_us_per_row": round(p * 1000, 1), "pce_us_per_row": round(o * 1000, 1), "ratio": round(p / o, 1), "peer_mib": peer["mib"], "pce_mib": memory}), flush=True)
