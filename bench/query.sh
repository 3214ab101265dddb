#!/usr/bin/env bash
# What the distributions of all columns given a row take beside its log-likelihood, and
# beside one column after another: one thread, the device's own calls.
#
#   bench/query.sh [ROWS [DEVICE...]]
#
# Trains an HCLT of 64 latents for 20 steps on ROWS, an .idx or .csv file of categories,
# or on the built-in digits of 784 pixels, and prints a JSON line for each device and
# share of given cells. Without DEVICE: cpu, and cuda where there is one.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
rows=${1:-builtin:digits/train}
[[ $rows == builtin:* ]] || rows=$(realpath "$rows")
shift || true
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce
go build -o "$work/query" ./bench/query
"$work/pce" train --config preset:hclt --set model.latents=64 --set "data.train=$rows" --set data.valid= --set data.test= \
  --set train.steps=20 --out "$work/run" --device cpu >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
[ $# -gt 0 ] || set -- cpu $(compgen -G '/dev/nvidia[0-9]*' >/dev/null && echo cuda)
stamp="\"date\":\"$(date +%F)\",\"commit\":\"$(git rev-parse --short HEAD)\",\"cpu\":\"$(lscpu | sed -n 's/^Model name: *//p' | head -n 1), $(nproc) cores\""
for device; do
  "$work/query" -model "$work/run/model.safetensors" -data "$rows" -device "$device" | sed "s|^{|{$stamp,|"
done
