#!/usr/bin/env bash
# Learning sum-product networks: test log-likelihood and seconds of the learnspn presets, and of
# SPFlow's learner on the same rows in the same run.
#
#   bench/learn.sh DIR [SPFLOW]
#
# DIR holds the files of https://github.com/arranger1044/DEBD, a folder per data set, packed or
# not, and for the counts nips-bow/nips100.csv or .gz. SPFLOW is a clone of the branch legacy of
# https://github.com/SPFlow/SPFlow. A copy of it runs under PYTHON (default /usr/bin/python3) with
# Debian's python3-sklearn, python3-networkx, python3-statsmodels, python3-mpmath and python3-tqdm;
# what newer versions of these have dropped is replaced in the copy: numpy.float and its like,
# from_numpy_matrix, and n_jobs of KMeans. Without SPFLOW or these packages a line says so. SETS, a
# list of folders of DIR, chooses some of them; WORDS does so for the counts (5 20 50),
# and PEERS names the tables that SPFlow learns too (nltcs nips5 nips20 nips50).
# Two lines compare training steps of 512 rows of the learned plants circuit and of an HCLT with 32
# latents on the same rows: seconds_per_1k_samples, edges and edges_per_second.
# Every line of output is a JSON object.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
[ $# -ge 1 ] || { sed -n '2,/^set /s/^# \{0,1\}//p' "$0" >&2; exit 2; }
dir=$(cd "$1" && pwd)
spflow=${2:+$(cd "$2" && pwd)}
cd "$(dirname "$0")/.."
work=$(mktemp -d)
trap 'rm -rf "$work"' EXIT
go build -o "$work/pce" ./cmd/pce
python=${PYTHON:-/usr/bin/python3}
if [ -n "$spflow" ]; then
  cp -r "$spflow/src" "$work/spflow"
  grep -rlE 'np\.(float|int|bool)\b|from_numpy_matrix|KMeans\(' "$work/spflow/spn" --include='*.py' |
    xargs sed -i -E 's/\bnp\.(float|int|bool)\b/\1/g; s/from_numpy_matrix/from_numpy_array/g; /KMeans\(/s/, n_jobs=[a-z0-9_]+//'
fi

learn() { # name, config flags: one JSON line
  local name=$1 begin wall
  shift
  rm -rf "$work/run-$name" # of a name that is given twice
  begin=$(date +%s.%N)
  "$work/pce" train "$@" --set train.epochs=0 --set threads=1 --out "$work/run-$name" --json >"$work/out" 2>"$work/log" || { cat "$work/log" >&2; exit 1; }
  wall=$(awk -v a="$begin" -v b="$(date +%s.%N)" 'BEGIN { printf "%.3f", b - a }')
  sed "s/^{/{\"learner\":\"pce\",\"data\":\"$name\",\"wall\":$wall,/" "$work/out"
}

peer() { # name, train, test: a JSON line of SPFlow's learner
  case " ${PEERS-nltcs nips5 nips20 nips50} " in *" $1 "*) ;; *) return ;; esac
  if [ -z "$spflow" ]; then
    echo "{\"learner\":\"spflow\",\"data\":\"$1\",\"skipped\":\"no clone of SPFlow's branch legacy was given\"}"
  elif ! PYTHONPATH="$work/spflow" "$python" -W ignore bench/peers/spflow_learn.py "$@" 2>"$work/log"; then
    echo "{\"learner\":\"spflow\",\"data\":\"$1\",\"skipped\":\"SPFlow failed: $(tail -n 1 "$work/log" | tr -d '"\\')\"}"
  fi
}

for name in ${SETS-nltcs plants audio jester netflix accidents dna pumsb_star}; do
  part() { ls "$dir/$name/"*".$1.data"* | head -n 1; }
  for split in train valid test; do
    f=$(part $split)
    case $f in *.gz) gzip -dc "$f" ;; *) cat "$f" ;; esac >"$work/$name.$split.csv"
  done
  learn "$name" --config "preset:learnspn-${name/_/-}" --set "data.train=$(part train)" --set "data.valid=$(part valid)" --set "data.test=$(part test)"
  peer "$name" "$work/$name.train.csv" "$work/$name.test.csv"
done

speed() { # name, model, then the flags of bench: one JSON line. The presets' own steps are all rows of one, and 512 of the other
  local name=$1 model=$2 edges time
  shift 2
  edges=$("$work/pce" info --model "$model" --json | grep -o '"edges":[0-9]*' | head -n 1 | cut -d : -f 2)
  time=$("$work/pce" bench "$@" --batch 512 --json 2>"$work/log" | grep -o '"seconds_per_1k_samples":[0-9.e-]*' | cut -d : -f 2) || { cat "$work/log" >&2; exit 1; }
  awk -v name="$name" -v edges="$edges" -v time="$time" \
    'BEGIN { printf "{\"step\":\"%s\",\"seconds_per_1k_samples\":%g,\"edges\":%d,\"edges_per_second\":%.4g}\n", name, time, edges, 1000 * edges / time }'
}

if [ -d "$work/run-plants" ]; then
  rows=(--set "data.train=$(ls "$dir/plants/"*.train.data* | head -n 1)" --set "data.valid=$(ls "$dir/plants/"*.valid.data* | head -n 1)" --set data.test=)
  "$work/pce" train --config preset:hclt --set model.latents=32 "${rows[@]}" --set train.epochs=0 --out "$work/run-hclt" >"$work/log" 2>&1 || { cat "$work/log" >&2; exit 1; }
  speed learnspn-plants "$work/run-plants/model.safetensors" --config preset:learnspn-plants "${rows[@]}"
  speed hclt-32 "$work/run-hclt/model.safetensors" --config preset:hclt --set model.latents=32 "${rows[@]}"
fi

nips=$(ls "$dir"/nips-bow/nips100.csv* 2>/dev/null | head -n 1 || true)
if [ -z "$nips" ] || ! "$python" -c 'import sklearn' 2>/dev/null; then
  echo '{"data":"nips","skipped":"nips-bow/nips100.csv or scikit-learn, which cuts it as SPFlow does, is not there"}'
  exit 0
fi
for words in ${WORDS-5 20 50}; do
  "$python" bench/peers/spflow_learn.py --split "$nips" $words "$work/nips$words"
  learn "nips$words" --config preset:learnspn-nips --set "model.leaf.categories=$((words > 20 ? 160 : 80))" --set "data.train=$work/nips$words.train.csv" --set "data.test=$work/nips$words.test.csv"
  peer "nips$words" "$work/nips$words.train.csv" "$work/nips$words.test.csv"
done
