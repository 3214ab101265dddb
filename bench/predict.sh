#!/usr/bin/env bash
# What a training step should take on a card, for the circuits of PyJuice's Table 1,
# as a Markdown table: seconds for 60,000 samples, with the terms that they come from,
# of which some overlap. Everything in it is a model, whose constants an H200 came to, or
# published. PyJuice's times are of an RTX 4090; the last column divides them by 4.3, by
# which the memory of an H200 is faster.
#
#   bench/predict.sh [CARD] [BATCH]
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
card=${1:-h200}
batch=${2:-512}
shards=$((batch < 2048 ? batch : 2048)) # a launch of all rows, or of as many as one may have
cd "$(dirname "$0")/.."
make -s build
echo "| circuit | sum edges | floor s | expected s | issue | memory | cache | latency | gaps | host | bound by | launches | MiB | PyJuice, published s | published / 4.3 |"
echo "|---|---|---|---|---|---|---|---|---|---|---|---|---|---|---|"
while read -r name latents published; do
  bin/pce bench --predict-card "$card" --config "configs/bench/table1-$name.yaml" --set "model.latents=$latents" --batch "$batch" --set "train.shard_rows=$shards" --json |
    awk -v name="$name-$latents" -v published="$published" '
      function value(text, key) {
        if (!match(text, "\"" key "\":\"?[^,\"}]+")) { print "predict.sh: no " key > "/dev/stderr"; exit 1 }
        text = substr(text, RSTART, RLENGTH)
        sub(/.*:"?/, "", text)
        return text
      }
      function part(key) { return sprintf("%.3g", value(step, key "_seconds") * 60000 / value($0, "batch")) }
      {
        step = substr($0, index($0, "\"step\":"))
        printf "| %s | %.3g M | %.3g | %.3g | %s | %s | %s | %s | %s | %s | %s | %d | %d | %s | %.2g |\n", name, value($0, "sum_edges") / 1e6,
          60 * value(step, "floor_seconds_per_1k"), 60 * value(step, "expected_seconds_per_1k"),
          part("issue"), part("memory"), part("cache"), part("latency"), part("gap"), part("host"),
          value(step, "bound"), value(step, "launches"), value(step, "device_memory_bytes") / 1048576, published, published / 4.3
      }'
done <<'SIZES'
hclt 64 0.8
hclt 128 1.3
hclt 256 2.6
hclt 512 8.8
hclt 1024 24.9
ratspn 64 0.6
ratspn 128 0.9
ratspn 256 1.6
ratspn 512 5.8
ratspn 1024 13.8
hmm 512 0.6
hmm 1024 1.0
hmm 2048 2.9
hmm 4096 10.1
hmm 6144 39.9
pd 64 2.0
pd 128 5.3
pd 256 15.4
pd 512 57.1
pd 768 203.7
SIZES
