#!/bin/sh
# Schedules of forests: times every schedule of the template on three shared forests in calls of 256 and 4,096 rows on one
# thread, with all representations and with walks alone, and says how far the choice is from the fastest and what the
# fastest schedule of AVX2 loses on the machine's own instructions. A JSON line for each run on stdout. Wants the folder
# shared beside the repository, and Python 3. A run takes 30 to 120 s.
#
#   bench/schedules.sh > bench/results/DATE-schedules-MACHINE.jsonl
set -eu
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
data=../shared/data/forest
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce

# run NAME MODEL ROWS BATCH WHAT [FLAGS...]
run() {
	name=$1 model=$2 rows=$3 batch=$4 what=$5
	shift 5
	"$work/pce" forest tune "$model" --data "$rows" --set data.header=no --threads 1 --batch "$batch" --dry-run --json "$@" >"$work/$name-$batch-$what.json"
	python3 bench/schedules.py "$name" "$what" "$work/$name-$batch-$what.json"
}

each() {
	run higgs "$data/xgb-higgs/higgs_xgb_model_save.json.gz" "$data/xgb-higgs/input.csv.gz" "$@"
	run airline "$data/xgb-airline/airline_xgb_model_save.json.gz" "$data/xgb-airline/input.csv.gz" "$@"
	run covtype "$data/xgb-covtype-standin/covtype.json.gz" "$data/xgb-covtype-standin/input.csv" "$@"
}

for batch in 256 4096; do
	each $batch all --exhaustive
	each $batch walks --exhaustive --represent array,sparse,reorg
	each $batch other --represent array,sparse,reorg --other avx2
done
