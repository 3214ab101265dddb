"""Prints the result of pce forest tune --json as one short JSON line, or with --histogram the table of docs/benchmarks.md."""

import json
import sys


def words(p):
    """Returns the parameters of a schedule as a few words."""
    if p["represent"] == "sliced":
        return "sliced"
    flags = "".join(" " + f for f in ("cache_rows", "by_depth", "unroll") if p[f])
    return f"{p['represent']} rows {p['row_tile']} trees {p['tree_tile']} nodes {p['tile_nodes']} interleave {p['interleave']}{flags}"


def line(name, what, r):
    """Returns what a run found: times are nanoseconds per row."""
    batch, points = r["batch"], r["schedules"]
    ns = lambda seconds: round(seconds * 1e9 / batch, 1)
    out = {"case": name, "what": what, "kernel_path": r["kernel_path"], "threads": r["threads"], "batch": batch, "when": r["when"], "schedules": len(points),
           "timed_by_search": r["timed"], "choice": words(points[r["choice"]]["params"])}
    if r["finals"]:
        out |= {"complete": r["complete"], "distance": round(r["distance"], 4),
                "finals": [[words(points[f["point"]]["params"]), ns(f["median_seconds"])] for f in r["finals"]],
                "ns_per_row": sorted(ns(p["seconds"]) for p in points if p["seconds"] > 0)}
    if r.get("other"):
        out["other"] = [{"kernel_path": o["kernel_path"], "choice": words(o["schedules"][o["choice"]]["params"]), "loss": round(o["loss"], 4)} for o in r["other"]]
    return out


def histogram(path):
    """Prints how many schedules take up to so many times as long as the fastest walk, a row for each run."""
    edges = [1.1, 1.25, 1.5, 2, 3, 5, 1e9]
    for text in open(path):
        r = json.loads(text)
        if r.get("what") != "walks":
            continue
        times = r["ns_per_row"]
        counts = [sum(1 for t in times if t / times[0] <= e) for e in edges]
        cells = [counts[0]] + [b - a for a, b in zip(counts, counts[1:])]
        print("|", " | ".join([r["case"], f"{r['batch']:,}", str(len(times))] + [str(c) for c in cells]), "|")


if sys.argv[1] == "--histogram":
    histogram(sys.argv[2])
else:
    print(json.dumps(line(sys.argv[1], sys.argv[2], json.load(open(sys.argv[3])))))
