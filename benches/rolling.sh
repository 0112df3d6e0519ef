#!/usr/bin/env bash
# A rolling restart of 2 api and 2 workers, one process every 3 s, while 200 runs stream: what do their clients receive?
# Settings: services.sh.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${BENCH_OUT:-$PWD/target/bench/rolling.jsonl}
. benches/services.sh
start_services

declare -A process
# start NAME: api-1, worker-2 …
start() {
  local address=HOLDFAST_ADDR=127.0.0.1:${ports[$1]:-0}
  env "$address" "$bin/holdfast" "${1%-*}" 2>>"$work/holdfast.log" &
  process[$1]=$!
  holdfast=("${process[@]}")
  [ "${1%-*}" = worker ] || await "${ports[$1]}"
}
declare -A ports=([api-1]=$(port) [api-2]=$(port))
names=(api-1 worker-1 api-2 worker-2)
for name in "${names[@]}"; do start "$name"; done
target=(--base "127.0.0.1:${ports[api-1]},127.0.0.1:${ports[api-2]}" --adapter holdfast)
"$bin/loadgen" "${target[@]}" jobs --n 100 --concurrency 16 >/dev/null

restart() {
  sleep 5
  for name in "${names[@]}" "${names[@]}"; do
    local old=${process[$name]}
    kill -TERM "$old"
    # The new process takes the port as soon as the old one has closed it.
    if [ "${name%-*}" = api ]; then while (exec 3<>"/dev/tcp/127.0.0.1/${ports[$name]}") 2>/dev/null; do sleep 0.02; done; fi
    start "$name"
    sleep 3
  done
}
"$bin/loadgen" "${target[@]}" --timeout-s 170 rolling --runs "$(size 200)" --tokens "$(size 800)" >>"$out" & load=$!
restart
wait "$load"
cat "$out"
