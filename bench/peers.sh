#!/usr/bin/env bash
# Training steps of peers on the CPU beside pce's, in turn, on one thread each.
#
#   bench/peers.sh [SOURCES] [ROUNDS]
#
# The peers are EinsumNetworks (a Poon-Domingos circuit with about as many edges),
# hmmlearn and numpy (a hidden Markov model), and SPFlow (a hidden Chow-Liu tree). They run
# under PYTHON (default /usr/bin/python3) where they are installed (Debian's python3-numpy,
# python3-torch, python3-hmmlearn) or where their repositories lie in SOURCES
# (EinsumNetworks, hmmlearn with its extension built in place, SPFlow, einops).
# Every line of output is a JSON object: the machine, the measurements, the ratio of the
# medians of the CPU time per row, and for a peer that is not there why.
set -euo pipefail
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
sources=${1:-}
rounds=${2:-3}
[ -z "$sources" ] || sources=$(cd "$sources" && pwd)
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce
"${PYTHON:-/usr/bin/python3}" bench/peers/compare.py "$work/pce" "$rounds" ${sources:+"$sources"}
