#!/usr/bin/env bash
# What a cluster costs, on one machine, as ratios of runs that alternate:
#   one worker against plain training, full batch and mini-batch, same threads;
#   two workers with a thread each against one worker with one thread;
#   short runs as a whole, with validation: one worker with a checkpoint after
#   each epoch, one without checkpoints, plain training with them.
# Usage: bench/cluster.sh [RUNS] [NLTCS]   (5 unless told; needs two free cores)
# NLTCS is a directory with nltcs.train.data.gz, nltcs.valid.data.gz and
# nltcs.test.data.gz; without it the short runs are left out.
# Seconds of the other rows are those of metrics.jsonl: medians over the epochs of a
# run but the first, then over the runs. Those of the short runs are the whole
# command's.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
runs=${1:-5}
[[ $runs =~ ^[1-9][0-9]*$ ]] || { echo "bench/cluster.sh: RUNS is $runs, want a number from 1 on" >&2; exit 2; }
nltcs=${2:+$(realpath "$2")}
cd "$(dirname "$0")/.."
[ -n "$nltcs" ] || echo "no directory of nltcs given: the short runs are left out" >&2
for part in ${nltcs:+train valid test}; do
  [ -f "$nltcs/nltcs.$part.data.gz" ] || { echo "$nltcs has no nltcs.$part.data.gz: give the directory with the three files, or none" >&2; exit 1; }
done
work=$(mktemp -d)
pids=()
stop() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap stop EXIT
go build -o "$work/pce" ./cmd/pce

up() { # name, workers, threads: starts a cluster
  "$work/pce" cluster up --dir "$work/$1" --workers "$2" --threads "$3" --url-file "$work/$1.url" >"$work/$1.log" 2>&1 &
  pids+=($!)
  for _ in $(seq 200); do
    [ -f "$work/$1.url" ] && return
    sleep 0.1
  done
  cat "$work/$1.log" >&2
  exit 1
}

train() { # name, then flags: seconds of an epoch
  local out="$work/run"
  rm -rf "$out"
  "$work/pce" train --config preset:hclt --set model.latents=32 --set data.valid= --set data.test= --set train.samples=0 \
    --set precision=fp32 --set train.checkpoint.epochs=0 --out "$out" --json "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  sed 's/.*"seconds":\([0-9.e+-]*\).*/\1/' "$out/metrics.jsonl" | tail -n +2 | sort -g | awk '{x[NR]=$1} END {print (x[int((NR+1)/2)] + x[int((NR+2)/2)]) / 2}'
}

whole() { # flags: seconds of a short run, start and end included
  rm -rf "$work/run"
  local from=$EPOCHREALTIME
  "$work/pce" train --config preset:nltcs --set train.epochs=20 --set "data.train=$nltcs/nltcs.train.data.gz" --set "data.valid=$nltcs/nltcs.valid.data.gz" \
    --set "data.test=$nltcs/nltcs.test.data.gz" --out "$work/run" --json "$@" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  awk -v a="$from" -v b="$EPOCHREALTIME" 'BEGIN { print b - a }'
}

row() { # name, then a function with its flags: a line of the two; a run that failed ends the script
  local seconds
  seconds=$("${@:2}")
  echo "$1 $seconds"
}

full=(--set train.rule=fullbatch-em --set train.epochs=3 --set train.finish.epochs=0)
mini=(--set train.epochs=3 --set train.batch_size=512)
up one 1 2
up single 1 1
up pair 2 1
for _ in $(seq "$runs"); do
  row plain_full train "${full[@]}" --threads 2
  row one_full train "${full[@]}" --cluster "@$work/one.url"
  row plain_mini train "${mini[@]}" --threads 2
  row one_mini train "${mini[@]}" --cluster "@$work/one.url"
  row single train "${full[@]}" --cluster "@$work/single.url"
  row pair train "${full[@]}" --set cluster.workers=2 --cluster "@$work/pair.url"
  if [ -n "$nltcs" ]; then
    row short_plain whole --threads 1
    row short_saved whole --cluster "@$work/single.url"
    row short_unsaved whole --cluster "@$work/single.url" --set train.checkpoint.epochs=0
  fi
done | tee "$work/times" >&2
awk '
  { n[$1]++; x[$1, n[$1]] = $2 }
  function median(k,  i, j, t) {
    for (i = 1; i <= n[k]; i++) for (j = i + 1; j <= n[k]; j++) if (x[k, j] < x[k, i]) { t = x[k, i]; x[k, i] = x[k, j]; x[k, j] = t }
    return (x[k, int((n[k] + 1) / 2)] + x[k, int((n[k] + 2) / 2)]) / 2 # of an even number the middle between two
  }
  END {
    printf "{\"runs\":%d,", n["single"]
    printf "\"full_batch\":{\"plain_seconds\":%.3f,\"one_worker_seconds\":%.3f,\"ratio\":%.3f},", median("plain_full"), median("one_full"), median("one_full") / median("plain_full")
    printf "\"mini_batch\":{\"plain_seconds\":%.3f,\"one_worker_seconds\":%.3f,\"ratio\":%.3f},", median("plain_mini"), median("one_mini"), median("one_mini") / median("plain_mini")
    printf "\"two_workers\":{\"one_seconds\":%.3f,\"two_seconds\":%.3f,\"speedup\":%.3f}", median("single"), median("pair"), median("single") / median("pair")
    if (n["short_saved"])
      printf ",\"short_run\":{\"plain_seconds\":%.3f,\"checkpoints_seconds\":%.3f,\"no_checkpoints_seconds\":%.3f,\"checkpoints_ratio\":%.3f,\"plain_ratio\":%.3f}", median("short_plain"), median("short_saved"), median("short_unsaved"), median("short_saved") / median("short_unsaved"), median("short_saved") / median("short_plain")
    printf "}\n"
  }' "$work/times"
