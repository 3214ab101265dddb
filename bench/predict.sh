#!/usr/bin/env bash
# What a training step should take on a card, for the circuits of PyJuice's Table 1,
# as a Markdown table. Everything in it is a model or published; nothing is measured.
#
#   bench/predict.sh [CARD] [BATCH]
set -euo pipefail
card=${1:-h200}
batch=${2:-512}
cd "$(dirname "$0")/.."
make -s build
echo "| circuit | sum edges | floor s | expected s | bound by | launches | MiB | PyJuice, published s |"
echo "|---|---|---|---|---|---|---|---|"
while read -r name latents published; do
  bin/pce bench --predict-card "$card" --config "configs/bench/table1-$name.yaml" --set "model.latents=$latents" --batch "$batch" --json |
    sed -nE 's/.*"sum_edges":([0-9]+).*"step".*"launches":([0-9]+).*"bound":"([a-z]+)".*"floor_seconds_per_1k":([0-9.e+-]+).*"expected_seconds_per_1k":([0-9.e+-]+).*"device_memory_bytes":([0-9]+).*/\1 \2 \3 \4 \5 \6/p' |
    while read -r edges launches bound floor expected bytes; do
      awk -v n="$name-$latents" -v e="$edges" -v l="$launches" -v b="$bound" -v f="$floor" -v x="$expected" -v m="$bytes" -v p="$published" \
        'BEGIN { printf "| %s | %.3g M | %.3g | %.3g | %s | %d | %d | %s |\n", n, e / 1e6, 60 * f, 60 * x, b, l, m / 1048576, p }'
    done
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
