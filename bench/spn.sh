#!/usr/bin/env bash
# Log-likelihoods of sum-product networks on one thread: code of pce, C++ that gcc compiles, and a
# prototype in C with AVX-512, in turn.
#
#   bench/spn.sh [ROUNDS] [MODEL...]
#   bench/spn.sh sweep
#   bench/spn.sh rat
#
# The second form prints how long code of two networks takes to compile and to run: by the interpreter, with AVX2 and
# with AVX-512, with tables over several variables and without, from columns of numbers and rows of bytes, by shuffles and by gathers,
# in parts of 1,000 to 100,000 instructions.
# The third form times a seeded RAT-SPN over 784 Gaussians with ten roots that the program makes: code of one root and of all,
# with the class of each row, on two threads, and the interpreter beside it; then classes and log-likelihoods through
# the library, those of the tensor path too. It needs nothing of ../shared.
#
# speaker_FADG0 is a mixture of Gaussians: a line for whole rows and one with half of the cells missing, of which the prototype knows none.
#
# Models, rows, the generator of the C++ and the prototype are in ../shared, which is not part of
# the repository: place the folder beside it. The generators run under PYTHON (default
# /usr/bin/python3; with numpy), what is timed under RUN, such as "chrt -r 5" on a machine with
# other work. PCE_CPU=avx2 leaves AVX-512 to the peers. A peer that is not there is a line that
# says so. Every line of output is a JSON object: the machine, then for each round and model the
# rows a microsecond of each program, and the ratios of pce's to them: null where pce has several threads or rows with
# missing cells, and they have not. The prototype wants AVX-512.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
form=peers
case ${1:-} in sweep | rat) form=$1 ;; esac
rounds=${1:-3}
[[ $form != peers || $rounds =~ ^[1-9][0-9]*$ ]] || { echo "bench/spn.sh: ROUNDS is $rounds, want a number from 1 on" >&2; exit 2; }
shift || true
cd "$(dirname "$0")/.."
python=${PYTHON:-/usr/bin/python3}
read -ra run <<<"${RUN:-}"
export SHARED; SHARED=$(realpath -m ../shared) PYTHONDONTWRITEBYTECODE=1
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
quiet() { "$@" >"$work/out" 2>"$work/log" || { cat "$work/out" "$work/log" >&2; exit 1; }; }
skip() { printf '{"skipped":"%s","missing":"%s"}\n' "$1" "$2"; }
go build -o "$work/spn" ./bench/spn
printf '{"date":"%s","commit":"%s","cpu":"%s","cores":%d}\n' "$(date +%F)" "$(git rev-parse --short HEAD)" \
  "$(lscpu | sed -n 's/^Model name: *//p' | head -n 1)" "$(nproc)"
if [[ $form == rat ]]; then
  "${run[@]}" "$work/spn" ${PCE_CPU:+-kernels "$PCE_CPU"} -rat 10000 -calls 9
  exit 0
fi
if [[ $form == sweep ]]; then
  for model in text/NLTCS_200.spn capnp/nltcs_100_200_2_10_8_8_1_True.bin; do
    "${run[@]}" "$work/spn" -model "$SHARED/data/spn/$model" -sweep 16384 -calls 5 | sed "s|^{|{\"model\":\"$(basename "$model")\",|"
  done
  exit 0
fi
if ! "$python" -c 'import numpy' 2>/dev/null; then
  skip everything "python3 with numpy, which makes the rows; set PYTHON"
  exit 0
fi
# The mixture of Gaussians: rows of float32, half of them its own samples; pce has them by columns, the prototype by rows.
speaker() {
  local at=$work/speaker round c line own
  mkdir -p "$at"
  (cd "$at" && "$python" "$SHARED/study/cpu/spn/speaker.py" >/dev/null &&
    "$python" -c 'import struct
b = open("spk.bin", "rb").read()
k, v, n = struct.unpack("3i", b[:12])
at = 12 + 4 * (2 * k * v + k)
open("rows.f32", "wb").write(b[at:at + 4 * n * v])')
  [[ -z $vectors || -z $compiler ]] || quiet gcc -O3 -march=native -DR=6 "$SHARED/study/cpu/spn/spk.c" -o "$at/c" -lm
  for round in $(seq "$rounds"); do
    c=''
    [[ ! -x $at/c ]] || c=$(cd "$at" && "${run[@]}" ./c | last 's|.*median \([0-9.]*\) M rows/s.*|\1|p')
    "${run[@]}" "$work/spn" ${PCE_CPU:+-kernels "$PCE_CPU"} -model "$SHARED/data/spn/capnp/speaker_FADG0.bin" -floats "$at/rows.f32" -calls 15 >"$work/lines"
    while read -r line; do
      printf '{"round":%d,"model":"speaker_FADG0","prototype":%s,"to_prototype":%s,%s\n' "$round" "${c:-null}" "$(beside "$line" "$c")" "${line#\{}"
    done <"$work/lines"
  done
}
# The rows: whole data sets, as bytes.
mkdir -p "$work/study/cpu/spn"
cp "$SHARED"/study/cpu/spn/spn_{simd,data}.py "$work/study/cpu/spn"
mkdir -p "$work/bench" && cp -r "$SHARED/bench/spn" "$work/bench/spn"
(cd "$work/study/cpu/spn" && "$python" spn_data.py >/dev/null)
compiler=; if command -v g++ >/dev/null && command -v gcc >/dev/null; then compiler=yes; else skip "C++ and prototype" "gcc and g++"; fi
vectors=; if grep -q avx512_vbmi /proc/cpuinfo; then vectors=yes; else skip prototype "a processor with AVX-512 VBMI"; fi
last() { tail -n 1 | sed -n "$1"; }
beside() { # line of pce, rate of a peer: the ratio, where the peer is there and has the same to do
  case $1 in *'"threads":'[2-9]* | *'"threads":1'[0-9]* | *'"missing":0.'*) set -- "$1" '' ;; esac
  if [[ -z $2 ]]; then echo null; else awk -v own="$(sed 's|.*"rows_per_us":\([0-9.]*\).*|\1|' <<<"$1")" -v peer="$2" 'BEGIN{printf "%.3g", own/peer}'; fi
}
for model in ${*:-NLTCS_200 PLANTS_4000 NIPS40 NIPS5 speaker_FADG0}; do
  if [[ $model == speaker_FADG0 ]]; then
    speaker
    continue
  fi
  text=$SHARED/data/spn/text/$model.spn rows=$work/study/cpu/spn/$model.u8
  [[ -f $rows ]] || { skip "$model" "rows: spn_data.py makes none"; continue; }
  calls=20
  [[ $model != NIPS5 ]] || calls=100
  if [[ -n $compiler ]]; then
    (cd "$work/bench/spn" && "$python" gen_cpp.py "$text" "$work/$model.cpp" 10 >/dev/null)
    g++ -O3 -ffast-math -march=native "$work/$model.cpp" -o "$work/cpp_$model"
    if [[ -n $vectors ]]; then
      (cd "$work/study/cpu/spn" && quiet "$python" spn_simd.py "$text" "$work/$model.c" "$rows")
      gcc -O3 -march=native -DLOG "$work/$model.c" -o "$work/c_$model" -lm
    fi
  fi
  for round in $(seq "$rounds"); do
    cpp='' c=''
    [[ ! -x $work/cpp_$model ]] || cpp=$("${run[@]}" "$work/cpp_$model" "$rows" "$calls" | last 's|.* \([0-9.]*\) rows/us.*|\1|p')
    [[ ! -x $work/c_$model ]] || c=$("${run[@]}" "$work/c_$model" "$rows" "$((calls / 10))" "$rows.ref" | last 's|.*median \([0-9.]*\) rows/us.*|\1|p')
    "${run[@]}" "$work/spn" ${PCE_CPU:+-kernels "$PCE_CPU"} -model "$text" -rows "$rows" -calls "$calls" >"$work/lines"
    while read -r line; do
      printf '{"round":%d,"model":"%s","cpp":%s,"prototype":%s,"to_cpp":%s,"to_prototype":%s,%s\n' \
        "$round" "$model" "${cpp:-null}" "${c:-null}" "$(beside "$line" "$cpp")" "$(beside "$line" "$c")" "${line#\{}"
    done <"$work/lines"
  done
done
