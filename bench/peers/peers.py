"""One training step of a peer, printed as one line of JSON: CPU seconds per 1000 rows.

    peers.py NAME SIZE ROWS STEPS [SOURCES]

NAME is einsum, hmmlearn, spflow or numpy; SOURCES is a folder with the peers' repositories,
which are looked for there before the installed ones. Rows are random: the cost of a step does
not depend on them. One thread computes. A peer that cannot be imported ends with exit code 3
and the reason.
"""
import json, os, resource, sys, time, types

name, size, rows, steps = sys.argv[1], *map(int, sys.argv[2:5])
if len(sys.argv) > 5:
    for sub in ("EinsumNetworks/src", "hmmlearn/src", "SPFlow", "einops"):
        sys.path.insert(0, os.path.join(sys.argv[5], sub))


def einsum():
    """EinsumNetworks: Poon-Domingos over 28 x 28 binary pixels, cells of 7, SIZE sums per region."""
    import networkx as nx
    if not hasattr(nx, "read_gpickle"):  # removed in networkx 3, which the program still names
        nx.read_gpickle = nx.write_gpickle = None
    import torch
    from EinsumNetwork import Graph, EinsumNetwork as en
    torch.set_num_threads(1)
    torch.manual_seed(1)
    net = en.EinsumNetwork(Graph.poon_domingos_structure(shape=(28, 28), delta=[[7, 7]]), en.Args(
        num_var=784, num_dims=1, num_classes=1, num_sums=size, num_input_distributions=size,
        exponential_family=en.BinomialArray, exponential_family_args={"N": 1}, online_em_frequency=1, online_em_stepsize=0.05))
    net.initialize()
    x = torch.randint(0, 2, (rows, 784)).float()
    edges = sum(layer.params.numel() for layer in net.einet_layers[1:])

    def step():
        en.log_likelihoods(net.forward(x)).sum().backward()
        net.em_process_batch()
    return step, {"version": "torch " + torch.__version__, "edges": int(edges)}


def hmmlearn():
    """hmmlearn: a categorical HMM of SIZE states, 32 steps, 256 symbols; one iteration of EM."""
    import logging
    import numpy as np
    from hmmlearn.hmm import CategoricalHMM
    logging.disable(logging.WARNING)  # it warns after every fit of one iteration
    x = np.random.default_rng(1).integers(0, 256, (rows * 32, 1))
    m = CategoricalHMM(n_components=size, n_iter=1, n_features=256, tol=-1, implementation="scaling", random_state=1)
    return lambda: m.fit(x, [32] * rows), {"version": "numpy " + np.__version__}


def numpy():
    """The same HMM and step by hand: Baum-Welch with one product of matrices per time step."""
    import numpy as np
    rng = np.random.default_rng(1)
    x = rng.integers(0, 256, (rows, 32))
    one_hot = np.eye(256, dtype="f4")[x.T]  # [32, rows, 256]
    t = {"start": rng.random(size), "move": rng.random((size, size)), "emit": rng.random((size, 256))}
    t = {k: (v / v.sum(-1, keepdims=True)).astype("f4") for k, v in t.items()}

    def step():
        seen = [t["emit"].T[x[:, i]] for i in range(32)]  # [rows, size] each
        alpha, scale = [t["start"] * seen[0]], []
        for i in range(32):
            if i:
                alpha.append((alpha[-1] @ t["move"]) * seen[i])
            scale.append(alpha[-1].sum(1, keepdims=True))
            alpha[-1] /= scale[-1]
        move, emit, beta = np.zeros_like(t["move"]), np.zeros((256, size), "f4"), np.ones_like(alpha[0])
        for i in range(31, -1, -1):
            emit += one_hot[i].T @ (alpha[i] * beta)
            if i:
                down = beta * seen[i] / scale[i]
                move += alpha[i - 1].T @ down
                beta = down @ t["move"].T
        start = (alpha[0] * beta).sum(0)
        for k, flows in (("start", start), ("move", t["move"] * move), ("emit", emit.T)):
            t[k] = flows / flows.sum(-1, keepdims=True)
    return step, {"version": "numpy " + np.__version__}


def spflow():
    """SPFlow: a hidden Chow-Liu tree of SIZE latents over 16 binary columns; one step of EM."""
    kmeans = types.ModuleType("fast_pytorch_kmeans")  # imported by the program, not used here
    kmeans.KMeans = None
    sys.modules.setdefault("fast_pytorch_kmeans", kmeans)
    import torch
    import spflow as module
    from spflow.learn.expectation_maximization import expectation_maximization
    from spflow.zoo.hclt import learn_hclt_binary
    torch.set_num_threads(1)
    torch.manual_seed(1)
    x = torch.randint(0, 2, (rows, 16)).float()
    m = learn_hclt_binary(x, num_hidden_cats=size, num_trees=1)
    version = getattr(module, "__version__", "of the sources") + ", torch " + torch.__version__
    return lambda: expectation_maximization(m, x, max_steps=1), {"version": version}


try:
    step, said = {"einsum": einsum, "hmmlearn": hmmlearn, "numpy": numpy, "spflow": spflow}[name]()
except Exception as reason:  # whatever an import or a constructor of another version raises
    print(f"{type(reason).__name__}: {reason}".splitlines()[0])
    sys.exit(3)
step()
begin = time.process_time()
for _ in range(steps):
    step()
seconds = (time.process_time() - begin) / steps
print(json.dumps({"who": name, "size": size, "rows": rows, "steps": steps, "cpu_seconds_per_1k_rows": seconds / rows * 1000,
                  "mib": resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024, **said}))
