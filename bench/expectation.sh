#!/usr/bin/env bash
# How far raw scores of forests are from those of whole rows when 30 % of the cells are taken
# away: as the library scores such rows, and as pce predict --density expects them.
#
#   bench/expectation.sh [CASE...]
#
# Cases are higgs, the shared forest on its real rows, and agaricus, on which this script trains
# a forest of 100 trees with XGBoost under PYTHON (default /usr/bin/python3; Debian's
# python3-numpy and python3-xgboost). Both need ../shared/data/forest, which is not part of the
# repository: place the folder shared beside it. The circuit is trained on the first half of the
# rows, and the second half is scored. One JSON line per case: mean squared differences from the
# score of the whole row, and the time of the expectation.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
cases=("$@")
[ $# -gt 0 ] || cases=(higgs agaricus)
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
forests=$(realpath ../shared/data/forest)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce
commit=$(git rev-parse --short HEAD)
cd "$work"
quiet() { "$@" >log 2>&1 || { cat log >&2; exit 1; }; }
for case in "${cases[@]}"; do
  case $case in
  higgs)
    gzip -dc "$forests"/xgb-higgs/*.json.gz >model
    gzip -dc "$forests/xgb-higgs/input.csv.gz" | tail -n 2000 >rows.csv # those before are random
    ;;
  agaricus)
    gzip -dc "$forests/xgbold-agaricus/input.csv.gz" | sed 's/nan/0/g' >rows.csv
    quiet "$python" - "$forests/xgbold-agaricus/expected.csv" <<'END'
import sys
import numpy as np
import xgboost as xgb
x, y = np.loadtxt("rows.csv", delimiter=","), np.loadtxt(sys.argv[1]) > 0.5
n = len(x) // 2
xgb.train({"objective": "binary:logistic", "max_depth": 6, "eta": 0.1, "nthread": 1, "seed": 1, "colsample_bytree": 0.2}, xgb.DMatrix(x[:n], y[:n]), 100).save_model("model.json")
END
    mv model.json model
    ;;
  *) echo "bench/expectation.sh: $case; want higgs or agaricus" >&2; exit 2 ;;
  esac
  total=$(wc -l <rows.csv)
  head -n $((total / 2)) rows.csv >train.csv
  tail -n +$((total / 2 + 1)) rows.csv >whole.csv
  awk -F, -v OFS=, 'BEGIN {srand(5)} {for (i = 1; i <= NF; i++) if (rand() < 0.3) $i = ""; print}' whole.csv >holes.csv
  rm -rf run
  quiet ./pce train --config preset:hclt --set model.latents=8 --set data.train=train.csv --set data.valid= --set data.test= --set data.header=no --set train.epochs=40 --out run
  score() { quiet ./pce predict --model model --set data.header=no --margin --force --data "$@"; }
  score whole.csv --out whole.out
  score holes.csv --out default.out
  from=$(date +%s%N)
  score holes.csv --out expected.out --density run/model.safetensors
  took=$(($(date +%s%N) - from))
  paste -d, whole.out default.out expected.out | awk -F, -v head="{\"date\":\"$(date +%F)\",\"commit\":\"$commit\",\"case\":\"$case\"" -v took="$took" '
    {d += ($2 - $1) ^ 2; e += ($3 - $1) ^ 2; n++}
    END {printf "%s,\"rows\":%d,\"missing\":0.3,\"mse_default\":%.4f,\"mse_expected\":%.4f,\"ms_per_row\":%.2f}\n", head, n, d / n, e / n, took / 1e6 / n}'
done
