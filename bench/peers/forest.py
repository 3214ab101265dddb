"""XGBoost's predictions on one thread, for bench/forest.sh: forest.py CASE ROUND."""

import glob
import gzip
import json
import os
import statistics
import sys
import tempfile
import time

import numpy as np
import xgboost as xgb

case, round_ = sys.argv[1], int(sys.argv[2])
path = sorted(glob.glob(case + "/*.json") + glob.glob(case + "/*.json.gz"))
path = [p for p in path if not p.endswith("/case.json")]
if len(path) != 1:
    sys.exit(f"{case}: {len(path)} models; want one .json or .json.gz")
with (gzip.open if path[0].endswith(".gz") else open)(path[0], "rb") as f:
    model = tempfile.NamedTemporaryFile(suffix=".json")
    model.write(f.read())
    model.flush()
booster = xgb.Booster({"nthread": 1})
booster.load_model(model.name)
booster.set_param({"nthread": 1, "predictor": "cpu_predictor"})
rows = np.loadtxt(glob.glob(case + "/input.csv*")[0], delimiter=",", dtype=np.float32)
rows = rows[1000:] if len(rows) > 2000 else rows  # the first 1000 of the shared models are random
rate = 1e5
for batch in (1, 64, 512, 4096, 200000):
    if batch / rate > 3:
        break  # a call would take too long
    x = np.ascontiguousarray(np.tile(rows, (batch // len(rows) + 1, 1))[:batch])
    cpu, wall = [], []
    for _ in range(300 if batch == 1 else max(3, min(20, round(rate / batch)))):
        a, c = time.perf_counter(), time.process_time()
        booster.inplace_predict(x, validate_features=False)
        wall.append(time.perf_counter() - a)
        cpu.append(time.process_time() - c)
    rate = batch / statistics.median(cpu)
    print(json.dumps({
        "case": os.path.basename(case), "round": round_, "program": "xgboost " + xgb.__version__, "batch": batch,
        "rows_per_second": round(rate), "call_seconds": statistics.median(wall),
    }), flush=True)
