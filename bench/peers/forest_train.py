"""Trains the forests of bench/forest.sh that are not shared: forest_train.py NAME FOLDER.

Rows are seeded, with correlated columns; FOLDER gets model.json and input.csv.
"""

import json
import os
import sys

import numpy as np
import xgboost as xgb

FORESTS = {  # columns, rows, trees, missing, parameters
    "wide": (90, 20000, 100, 0, {"max_depth": 8}),
    "missing": (28, 20000, 100, 0.3, {"max_depth": 8}),
    "shallow": (28, 20000, 1000, 0, {"max_depth": 6, "min_child_weight": 0}),
    "fine": (28, 20000, 1000, 0, {"max_depth": 6, "max_bin": 2048, "min_child_weight": 0}),
    "deep": (28, 20000, 500, 0, {"max_depth": 0, "grow_policy": "lossguide", "max_leaves": 5000, "min_child_weight": 0, "max_bin": 320, "colsample_bytree": 0.1, "eta": 0.01}),
}
name, folder = sys.argv[1], sys.argv[2]
columns, rows, trees, missing, parameters = FORESTS[name]
rng = np.random.default_rng(20261123)
x = (rng.normal(size=(rows, 12)) @ rng.normal(size=(12, columns)) + rng.normal(size=(rows, columns))).astype(np.float32)
w = rng.normal(size=(columns, 4))
y = (np.sin(x @ w / np.sqrt(columns)).sum(axis=1) + rng.normal(size=rows) > 0).astype(np.float32)
x[rng.random(x.shape) < missing] = np.nan
booster = xgb.train({"objective": "binary:logistic", "tree_method": "hist", "eta": 0.1, "lambda": 0, "nthread": 1, "seed": 1, **parameters}, xgb.DMatrix(x, y), trees)
os.makedirs(folder, exist_ok=True)
booster.save_model(os.path.join(folder, "model.json"))
np.savetxt(os.path.join(folder, "input.csv"), x[:2000], fmt="%.9g", delimiter=",")
leaves = [t.count('"leaf"') for t in booster.get_dump(dump_format="json")]
print(json.dumps({"forest": name, "columns": columns, "trees": trees, "leaves": [min(leaves), sum(leaves) // trees, max(leaves)]}))
