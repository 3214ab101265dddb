#!/usr/bin/env bash
# The Go that pce reduce emits, simplified and as the equations read, and programs written by hand, on one thread.
#
#   bench/reduction.sh [-rounds 5] [-limit 60] [NAME...]
#
# The programs of equations are in ../shared/reduction, which is not part of the repository: place the folder beside it. Every
# line of output is a JSON object: the machine, then a line for each program. With the default limit all
# programs take about ten minutes; lbp needs 5 GB of memory.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
cd "$(dirname "$0")/.."
if [[ ! -d ../shared/reduction ]]; then
  printf '{"skipped":"everything","missing":"../shared/reduction, the programs of equations"}\n'
  exit 0
fi
printf '{"date":"%s","commit":"%s","cpu":"%s","cores":%d}\n' "$(date +%F)" "$(git rev-parse --short HEAD)" \
  "$(lscpu | sed -n 's/^Model name: *//p' | head -n 1)" "$(nproc)"
exec go run ./bench/reduction "$@"
