#!/usr/bin/env bash
# Predictions of decision forests on one thread: XGBoost's inplace_predict and pce, in turn.
#
#   bench/forest.sh [ROUNDS [CASE...]]
#
# A case is a folder of ../shared/data/forest, which is not part of the repository (place
# the folder shared beside it), or one that bench/peers/forest_train.py trains, on seeded
# rows: wide, missing, shallow, fine, or deep, which takes minutes. FORESTS is the folder
# where trained ones are kept and looked for. XGBoost runs under PYTHON (default
# /usr/bin/python3; Debian's python3-xgboost). With g++ and a CPU that has AVX-512 with
# VBMI, the C++ prototype of ../shared/study runs xgb-higgs too, without the sigmoid. Every
# line of output is a JSON object: the machine, then for each case, round, batch and program
# the rows per second, of CPU time for XGBoost; for pce also those of two threads, the median and
# the 99th percentile of one row's time while the other core is busy, and the time from a file
# that is not packed to the first prediction.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
rounds=${1:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "bench/forest.sh: ROUNDS is $rounds, want a number from 1 on" >&2; exit 2; }
shift || true
cases=("$@")
[ $# -gt 0 ] || cases=(xgb-higgs xgb-airline xgb-covtype-standin wide missing shallow fine)
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
forests=${FORESTS:-$work}
export OMP_NUM_THREADS=1 OMP_WAIT_POLICY=PASSIVE
quiet() { "$@" >"$work/out" 2>"$work/log" || { cat "$work/out" "$work/log" >&2; exit 1; }; }
go test -c -o "$work/forest.test" .
printf '{"date":"%s","commit":"%s","cpu":"%s","cores":%d}\n' "$(date +%F)" "$(git rev-parse --short HEAD)" \
  "$(lscpu | sed -n 's/^Model name: *//p' | head -n 1)" "$(nproc --all)"
for case in "${cases[@]}"; do
  folder=../shared/data/forest/$case
  if [ ! -d "$folder" ]; then
    folder=$forests/$case
    [ -e "$folder/model.json" ] || quiet "$python" bench/peers/forest_train.py "$case" "$folder"
  fi
  prototype=
  if [ "$case" = xgb-higgs ] && command -v g++ >/dev/null && grep -q avx512_vbmi /proc/cpuinfo && [ -e ../shared/study/cpu/forest/bitslice.cpp ]; then
    g++ -O3 -march=native -o "$work/prototype" ../shared/study/cpu/forest/bitslice.cpp
    gzip -dc "$folder"/*.json.gz >"$work/model.json"
    gzip -dc "$folder"/input.csv.gz | tail -n +1001 | sed 's/$/,0/' >"$work/rows.csv"
    quiet "$python" ../shared/bench/forest/limit_probe.py "$work/model.json" "$work/rows.csv" "$work/forest.bin"
    prototype=yes
  fi
  plain=$work/plain/$case # the same forest, not packed
  mkdir -p "$plain"
  cp "$folder"/input.csv* "$plain"
  for file in "$folder"/*.json*; do
    [ "$(basename "$file")" = case.json ] || gzip -dcf "$file" >"$plain/model.json"
  done
  for round in $(seq "$rounds"); do
    quiet "$python" bench/peers/forest.py "$folder" "$round"
    grep '^{' "$work/out" # it prints warnings between them
    if [ -n "$prototype" ]; then
      quiet "$work/prototype" "$work/forest.bin" 200192 0
      sed -n 's|^bit-sliced batch \([0-9]*\): median \(\S*\) M rows/s.*|\1 \2|p' "$work/out" | while read -r batch rate; do
        printf '{"case":"%s","round":%d,"program":"prototype","batch":%d,"rows_per_second":%.0f}\n' "$case" "$round" "$batch" "$(awk "BEGIN{print $rate*1e6}")"
      done
    fi
    PCE_FOREST=$plain quiet "$work/forest.test" -test.run '^$' -test.bench 'Predict$/(rows|threads)|PredictTail|FirstPrediction' -test.benchmem -test.benchtime 0.5s
    sed -n 's|^BenchmarkPredict/rows=\([0-9]*\)\S*\s*\S*\s*\(\S*\) ns/op\s*\(\S*\) rows/s.* \(\S*\) allocs/op$|\1 \2 \3 \4|p' "$work/out" | while read -r batch ns rate allocs; do
      printf '{"case":"%s","round":%d,"program":"pce","batch":%d,"rows_per_second":%.0f,"call_seconds":%s,"allocations":%s}\n' "$case" "$round" "$batch" "$rate" "$(awk "BEGIN{print $ns/1e9}")" "$allocs"
    done
    sed -n 's|^BenchmarkPredict/threads=2/rows=\([0-9]*\)\S*\s.* \(\S*\) rows/s.*|"batch":\1,"threads":2,"rows_per_second":\2|p
      s|^BenchmarkPredictTail\S*\s.*\s\(\S*\) p50-ns\s*\(\S*\) p99-ns.*|"batch":1,"p50_ns":\1,"p99_ns":\2|p
      s|^BenchmarkFirstPrediction\S*\s*\S*\s*\(\S*\) ns/op.*|"first_prediction_ns":\1|p' "$work/out" | while read -r line; do
      printf '{"case":"%s","round":%d,"program":"pce",%s}\n' "$case" "$round" "$line"
    done
  done
done
