#!/usr/bin/env bash
# What serving costs beside computing, on one machine, as ratios of runs that
# alternate. The load generator is a process of its own (bench/serve).
#
#   bench/serve.sh NLTCS [ROUNDS]   NLTCS is a directory with nltcs.*.data.gz
#   bench/serve.sh soak NLTCS [SECONDS]
#
# Every line of output is a JSON object. The first form prints, for HTTP/1.1 and
# HTTP/2, the capacity for requests of one row beside that of a server that answers
# without a model, the latencies of both at 0.7 of the lower capacity, the rows a
# second of requests of 4096 rows beside pce bench, and the allocations of a request.
#
# The second sends twice what the server can answer, for 300 seconds unless told, while its
# model is replaced every second and its memory is watched. For a fifth of that time the flood
# then continues while a second model is asked now and then, as it was before the flood; at last
# the server is killed and started again. It fails if answers have other codes than 200, 429 and
# 504, or if memory is above that of the loaded server, a second version, what 512 requests take,
# and 10 %.
# Latencies mean something on an idle machine alone: the limit of p99 is printed beside
# it, and not enforced.
set -euo pipefail
export LC_ALL=C # numbers have points, and orders are those of bytes
case ${1:-} in -h | --help) sed -n '2,/^set /s/^# \{0,1\}//p' "$0"; exit ;; esac
soak=0
[ "${1:-}" != soak ] || { soak=1; shift; }
data=$(realpath "${1:?usage: bench/serve.sh [soak] NLTCS [ROUNDS or SECONDS]}")
amount=${2:-}
[[ -z $amount || $amount =~ ^[1-9][0-9]*$ ]] || { echo "bench/serve.sh: ROUNDS or SECONDS is $amount, want a number from 1 on" >&2; exit 2; }
cd "$(dirname "$0")/.."
work=$(mktemp -d)
pids=()
stop() {
  for p in "${pids[@]}"; do kill "$p" 2>/dev/null || true; done
  wait
  rm -rf "$work"
}
trap stop EXIT
go build -o "$work/pce" ./cmd/pce
go build -o "$work/load" ./bench/serve
latents=32
# The soak's model is heavier: what is too much then is computing, not answering 429, and a
# batch takes longer than the turns of the system's scheduler, which the load generator shares.
[ "$soak" = 0 ] || latents=256
train() { # seed, directory
  "$work/pce" train --config preset:hclt --set "model.latents=$latents" --set "data.train=$data/nltcs.train.data.gz" --set data.valid= --set data.test= \
    --set train.epochs=1 --set "seed=$1" --out "$work/$2" >"$work/said" 2>&1 || { cat "$work/said" >&2; exit 1; }
}
train 1 run
model=$work/model.safetensors
cp "$work/run/model.safetensors" "$model"

serve() { # flags: starts a server and sets url and server
  begin "$work/pce" serve --model "nltcs=$model" --addr 127.0.0.1:0 "$@"
}
begin() { # a server's command, which prints its address
  : >"$work/url"
  "$@" >"$work/url" 2>"$work/log" &
  server=$!
  pids+=("$server")
  for _ in $(seq 200); do
    url=$(head -n 1 "$work/url")
    [ -z "$url" ] || return 0
    sleep 0.02
  done
  cat "$work/log" >&2
  exit 1
}
ask() { "$work/load" -url "$url" -model nltcs "$@"; }
field() { sed -n "s/.*\"$1\":\([-0-9.e+]*\).*/\1/p"; }
times() { awk -v a="$1" -v b="$2" 'BEGIN{printf "%.6g", a * b}'; }

if [ "$soak" = 1 ]; then
  seconds=${amount:-300}
  # The clients would be on other machines, so they have a core of their own: threads that work on one
  # batch wait for each other, and a client that takes the core of one stops both.
  threads=$(($(nproc) > 1 ? $(nproc) - 1 : 1))
  serve --model "quiet=$work/run/model.safetensors" --threads "$threads"
  train 2 other
  rss() { awk '/VmRSS/{print $2}' "/proc/$server/status"; }
  capacity=$(ask -time 5s -workers 8 -format binary -rows 256 | field rate)
  idle=$(rss)
  # A client on another machine would not wait for this one's scheduler.
  first=()
  if chrt -r 5 true 2>/dev/null; then first=(chrt -r 5); else echo "bench/serve.sh: chrt is missing or not allowed: latencies of the neighbour include what its client waits for a core" >&2; fi
  quiet() { "${first[@]}" "$work/load" -url "$url" -model quiet -rate 25 -workers 16 -time "$1"; }
  # As long as beside the flood below: the 99th percentile of few requests says little.
  alone=$(quiet "$((seconds / 5))s" | field p99_ms)
  (
    for ((i = 0; ; i++)); do
      from=$([ $((i % 2)) = 0 ] && echo other || echo run)
      cp "$work/$from/model.safetensors" "$model.new" && mv "$model.new" "$model"
      sleep 1
    done
  ) &
  replacing=$!
  pids+=("$replacing")
  (while sleep 1; do rss; done) >"$work/rss" 2>/dev/null &
  pids+=("$!")
  flood() { ask -rate "$(times 2 "$capacity")" -time "$1" -workers 512 -format binary -rows 256; }
  flood "${seconds}s" | tee "$work/soak"
  curl -s "$url/metrics" >"$work/metrics"
  kill "$replacing"
  quiet "$((seconds / 5))s" >"$work/quiet" &
  neighbour=$!
  flood "$((seconds / 5))s" | tee -a "$work/soak"
  wait "$neighbour"
  echo "{\"neighbour_p99_ms_alone\":$alone,\"neighbour_p99_ms\":$(field p99_ms <"$work/quiet"),\"neighbour_codes\":$(sed 's/.*"codes"://; s/}$//' "$work/quiet")}"
  planned=$(sed -n 's/^pce_model_memory_bytes{model="nltcs"} //p' "$work/metrics")
  sort -n "$work/rss" | tail -1 | awk -v idle="$idle" -v planned="$planned" '{allowed=1.1*(idle+planned/1024+512*16)
    printf "{\"rss_kib_loaded\":%d,\"rss_kib_most\":%d,\"rss_kib_allowed\":%d}\n",idle,$1,allowed; exit !($1<=allowed)}' ||
    { echo "bench/serve.sh: the server took more memory than planned, see above" >&2; exit 1; }
  # The 99th percentile is interpolated in its bucket.
  grep 'model="nltcs"' "$work/metrics" | awk '/^pce_model_info/{split($1,v,"version=\""); sub("\".*","",v[2])}
    /^pce_inference_compute_seconds_sum/{s=$2} /^pce_inference_compute_seconds_count/{c=$2}
    /^pce_inference_duration_seconds_bucket/{split($1,p,"le=\""); n++; le[n]=p[2]+0; b[n]=$2}
    END{t=0.99*b[n]; for(i=1;i<n && b[i]<t;i++); low=i>1?le[i-1]:0; below=i>1?b[i-1]:0; q=i<n?low+(le[i]-low)*(t-below)/(b[i]-below):le[n-1]
    printf "{\"versions\":%d,\"compute_ms\":%.3f,\"p99_in_the_server_ms\":%.2f,\"p99_limit_ms\":%.2f}\n",v[2],1e3*s/c,1e3*q,0.5+3e3*s/c}'
  kill -9 "$server"
  from=$(date +%s%N)
  serve --threads "$threads"
  curl -sf "$url/v2/models/nltcs/ready" >/dev/null
  echo "{\"restart_seconds\":$(awk -v a="$from" -v b="$(date +%s%N)" 'BEGIN{printf "%.3f",(b-a)/1e9}')}"
  if tr ',{' '\n\n' < <(cat "$work/soak" "$work/quiet") | sed -n 's/^"\([0-9a-z-]*\)":[0-9]*}*$/\1/p' | grep -vE '^(200|429|504)$' | grep -E '^([0-9]{3}|net|grpc)'; then
    echo "bench/serve.sh: answers with other codes, see above" >&2
    exit 1
  fi
  exit 0
fi

rounds=${amount:-3}
begin "$work/load" noop 127.0.0.1:0
noop=$url
serve --max-queue-rows 65536 --parallel "$(nproc)"
asknoop() { "$work/load" -url "$noop" -model nltcs "$@"; }
median() { sort -g | awk '{a[NR]=$1} END{print (a[int((NR+1)/2)] + a[int((NR+2)/2)]) / 2}'; }
# The median of the rounds' ratios, each of two runs that follow each other: what slows a machine for longer slows both.
ratio() { paste "$1" "$2" | awk '{printf "%.3f\n", $2/$1}' | median; }
# With fewer workers than this the server would idle while all of them wait for --max-queue-delay.
for proto in h1 h2; do
  : >"$work/a" >"$work/b"
  for ((i = 0; i < rounds; i++)); do
    asknoop -proto $proto -workers 256 -time 4s | tee -a "$work/a" | sed 's/^{/{"who":"noop",/'
    ask -proto $proto -workers 256 -time 4s | tee -a "$work/b" | sed 's/^{/{"who":"pce",/'
  done
  field rate <"$work/a" >"$work/noop" && field rate <"$work/b" >"$work/pce-rate"
  a=$(median <"$work/noop") b=$(median <"$work/pce-rate")
  rate=$(awk -v a="$a" -v b="$b" 'BEGIN{print 0.7*(a<b?a:b)}')
  : >"$work/p" >"$work/q"
  for ((i = 0; i < rounds; i++)); do
    asknoop -proto $proto -time 4s -rate "$rate" | tee -a "$work/p" | sed 's/^{/{"who":"noop",/'
    ask -proto $proto -time 4s -rate "$rate" | tee -a "$work/q" | sed 's/^{/{"who":"pce",/'
  done
  p=$(field p99_ms <"$work/p" | median) q=$(field p99_ms <"$work/q" | median)
  echo "{\"proto\":\"$proto\",\"rows\":1,\"capacity_ratio\":$(ratio "$work/noop" "$work/pce-rate"),\"rate\":$rate,\"noop_p99_ms\":$p,\"p99_ms\":$q,\"p99_allowed_ms\":$(awk -v p="$p" 'BEGIN{printf "%.3f",0.5+5*p}')}"
done
for format in binary json; do
  : >"$work/a" >"$work/b"
  for ((i = 0; i < rounds; i++)); do
    "$work/pce" bench --model "$model" --data "$data/nltcs.train.data.gz" --time 4s --json 2>"$work/said" | field rows_per_second >>"$work/a" || { cat "$work/said" >&2; exit 1; }
    ask -format $format -rows 4096 -workers 4 -time 4s | field rows_per_second >>"$work/b"
  done
  echo "{\"format\":\"$format\",\"rows\":4096,\"bench_rows_per_second\":$(median <"$work/a"),\"rows_per_second\":$(median <"$work/b"),\"ratio\":$(ratio "$work/a" "$work/b")}"
done
go test ./serve -run '^$' -bench 'Request/.*/rows=1$' -benchtime 1s |
  sed -n 's/^BenchmarkRequest\/format=\([a-z]*\)\/rows=1.* \([0-9]*\) allocs.*/{"format":"\1","rows":1,"allocations":\2}/p'
