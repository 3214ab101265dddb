#!/usr/bin/env bash
# Training steps of an HCLT on the CPU, pce beside a numpy peer, in turn.
#
#   bench/hclt-cpu.sh PEER.py [ROUNDS]
#
# PEER.py M BATCH STEPS prints one JSON object with "gflops", counted as here: 6
# for each sum edge and sample, over the whole step. It runs under PYTHON
# (default /usr/bin/python3) with numpy and OpenBLAS. Every line of output is a
# JSON object: the peer's hash, the measurements, and the ratio of the medians.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
peer=$(realpath "${1:?usage: bench/hclt-cpu.sh PEER.py [ROUNDS]}")
rounds=${2:-3}
[[ $rounds =~ ^[1-9][0-9]*$ ]] || { echo "bench/hclt-cpu.sh: ROUNDS is $rounds, want a number from 1 on" >&2; exit 2; }
python=${PYTHON:-/usr/bin/python3}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce
# OpenBLAS before 0.3.22 takes SSE kernels on processors that it does not know.
if grep -q avx512f /proc/cpuinfo; then export OPENBLAS_CORETYPE=${OPENBLAS_CORETYPE:-SkylakeX}; fi
printf '{"peer_sha256":"%s","commit":"%s","cpu":"%s"}\n' "$(sha256sum <"$peer" | cut -c1-64)" \
  "$(git rev-parse --short HEAD)" "$(sed -n 's/^model name[^:]*: //p' /proc/cpuinfo | head -1)"
for m in 64 256; do
  out=$work/$m
  for ((i = 0; i < rounds; i++)); do
    "$python" "$peer" "$m" 512 3 | sed "s/^{/{\"who\":\"peer\",/" >>"$out"
    for p in fp32 mixed; do
      "$work/pce" bench --config "configs/bench/hclt-m$m.yaml" --set precision=$p --json >"$work/line" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
      sed "s/^{/{\"who\":\"pce-$p\",\"M\":$m,/" "$work/line" >>"$out"
    done
  done
  cat "$out"
  "$python" - "$m" "$out" <<'PY'
import json, statistics, sys
m, rows = int(sys.argv[1]), [json.loads(l) for l in open(sys.argv[2])]
med = lambda w: statistics.median(r["gflops"] for r in rows if r["who"] == w)
peer = med("peer")
print(json.dumps({"M": m, "peer_gflops": round(peer, 1), "fp32_gflops": round(med("pce-fp32"), 1), "mixed_gflops": round(med("pce-mixed"), 1),
                  "fp32_ratio": round(med("pce-fp32") / peer, 2), "mixed_ratio": round(med("pce-mixed") / peer, 2)}))
PY
done
