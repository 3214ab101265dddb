#!/usr/bin/env bash
# Predictions of a decision forest on one thread: XGBoost's inplace_predict and pce, in turn.
#
#   bench/forest.sh [ROUNDS]
#
# The forest is ../shared/data/forest/xgb-higgs, 100 trees of depth 8 and real rows, which
# are not part of the repository: place the folder shared beside it. XGBoost runs under PYTHON (default /usr/bin/python3; Debian's
# python3-xgboost). Every line of output is a JSON object: the machine, then for each
# round, batch and program the rows per second of CPU time, the median of its calls.
set -euo pipefail
rounds=${1:-3}
cd "$(dirname "$0")/.."
case=$(realpath ../shared/data/forest/xgb-higgs)
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go test -c -o "$work/forest.test" .
printf '{"date":"%s","commit":"%s","cpu":"%s","cores":%d,"case":"%s"}\n' "$(date +%F)" "$(git rev-parse --short HEAD)" \
  "$(lscpu | sed -n 's/^Model name: *//p' | head -n 1)" "$(nproc)" "$(basename "$case")"
for round in $(seq "$rounds"); do
  OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE "${PYTHON:-/usr/bin/python3}" bench/peers/forest.py "$case" "$round" >"$work/xgboost" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
  grep '^{' "$work/xgboost" # it prints warnings between them
  "$work/forest.test" -test.run '^$' -test.bench 'BenchmarkPredict/rows' -test.benchmem -test.benchtime 0.5s >"$work/out" || { cat "$work/out" >&2; exit 1; }
  sed -n 's|^BenchmarkPredict/rows=\([0-9]*\)\S*\s*\S*\s*\(\S*\) ns/op\s*\(\S*\) rows/s.* \(\S*\) allocs/op$|\1 \2 \3 \4|p' "$work/out" | while read -r batch ns rate allocs; do
    printf '{"round":%d,"program":"pce","batch":%d,"rows_per_second":%s,"call_seconds":%s,"allocations":%s}\n' "$round" "$batch" "$rate" "$(awk "BEGIN{print $ns/1e9}")" "$allocs"
  done
done
