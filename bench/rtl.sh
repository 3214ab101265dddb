#!/usr/bin/env bash
# What yosys maps the datapaths of models to: bench/rtl.sh [--faithful] MODEL... prints a line
# for each with the DSP48E1 slices and look-up tables, beside the estimates of report.json.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
command -v yosys >/dev/null || { echo "bench/rtl.sh: no yosys; install Debian's package yosys"; exit 0; }
flags=()
[ "${1:-}" != --faithful ] || { flags+=("$1"); shift; }
[ $# -gt 0 ] || { echo "bench/rtl.sh: give models, such as NLTCS_200.spn"; exit 2; }
models=()
for model; do models+=("$(realpath "$model")"); done
cd "$(dirname "$0")/.."
dir=$(mktemp -d)
trap 'rm -rf "$dir"' EXIT
go build -o "$dir/pce" ./cmd/pce
for model in "${models[@]}"; do
  "$dir/pce" compile "$model" --target rtl "${flags[@]}" -o "$dir/out" >/dev/null
  yosys -q -p "read_verilog $dir/out/pce_datapath.v; synth_xilinx -family xc7 -top pce_datapath; tee -q -o $dir/stat stat"
  awk -v name="$(basename "$model")" '
    FILENAME ~ /report.json/ && $1 == "\"lut\":" { lut = $2 + 0 }
    FILENAME ~ /report.json/ && $1 == "\"dsp\":" { dsp = $2 + 0 }
    /design hierarchy/ { whole = 1 }
    whole && $1 ~ /^LUT[1-6]$/ { luts += $2 }
    whole && $1 ~ /^SRL/ { luts += $2 }
    whole && $1 == "DSP48E1" { dsps = $2 }
    END { printf "%s: %d DSP48E1, %d LUT with shift registers; report.json: %d, %d\n", name, dsps, luts, dsp, lut }' "$dir/out/report.json" "$dir/stat"
done
