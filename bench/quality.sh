#!/usr/bin/env bash
# The table of quality in docs/benchmarks.md: trains each preset of density estimation and prints
# a row of test log-likelihoods for seeds 42, 1 and 2.
# Usage: bench/quality.sh DIR [FLAG...]
# DIR holds the files of https://github.com/arranger1044/DEBD, a folder per data
# set, packed or not. What follows goes to pce train, for example
# --set train.rule=anemone. SETS, a list of presets, chooses some of them.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
dir=$(cd "$1" && pwd)
shift
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce

file() { # preset, split: the path of its rows
  local f
  for f in "$dir/$1/$1.$2.data" "$dir/$1/b$1.$2.data"; do # netflix and audio are called bnetflix and baudio
    for f in "$f" "$f.gz"; do [ -f "$f" ] && { echo "$f"; return; }; done
  done
  echo "no $2 rows of $1 below $dir" >&2
  return 1
}

echo '| data | test, seed 42 | seeds 1 and 2 | seconds |'
echo '|---|---|---|---|'
for name in ${SETS:-nltcs jester netflix audio dna accidents}; do
  train=$(file "$name" train)
  valid=$(file "$name" valid)
  test=$(file "$name" test) # each a command of its own, which ends the script where it fails
  lls=() begin=$(date +%s)
  for seed in 42 1 2; do
    "$work/pce" train --config "preset:$name" --set "data.train=$train" --set "data.valid=$valid" --set "data.test=$test" \
      --set "seed=$seed" --out "$work/$name-$seed" --json "$@" >"$work/out" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
    lls+=("$(sed 's/.*"test_ll":\([^,]*\),.*/\1/' "$work/out")")
  done
  printf '| %s | %.4g | %.4g, %.4g | %d |\n' "$name" "${lls[@]}" $((($(date +%s) - begin) / 3))
done
