#!/usr/bin/env bash
# Measures Holdfast in a release build, and prints a table.
# Scaled out: 1 api, 1 worker, a private PostgreSQL and Redis, the fake upstream and the load generator, all on this
# machine.
# Embedded: one process. One scenario or more, or all:
#   benches/run.sh all
# Results: target/bench/results.jsonl. More settings: services.sh. Measure on a quiet machine.
#   BENCH_PEER=FILE   measure another server too, in this run: docs/benchmarks.md describes what the file must define
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${BENCH_OUT:-$PWD/target/bench/results.jsonl}
. benches/services.sh

all=(ttft throughput jobs paced resume fanout idle replay embedded tools)
scenario() {
  case $1 in
    ttft)
      measure ttft-1 ttft --n "$(size 300)"
      measure ttft-32 ttft --n "$(size 2000)" --concurrency 32 ;;
    throughput) measure throughput throughput --runs 64 --n "$(size 3200)" ;;
    jobs) measure jobs jobs --n "$(size 5000)" ;;
    paced) measure paced paced --runs "$(size 500)" --tokens 200 --redis "127.0.0.1:$redis_port" ;;
    resume) measure resume resume --runs "$(size 500)" ;;
    fanout)
      measure watchers-1000 fanout --subscribers "$(size 1000)" --tokens 150
      measure watchers-5000 fanout --subscribers "$(size 5000)" --lead-ms 12000 --tokens 30 ;;
    # Memory that earlier scenarios have left in the processes would hide the memory of these.
    idle)
      start_holdfast; measure idle-streams idle --connections "$(size 2000)" --hold-ms 12000
      start_holdfast; measure idle-runs idle --connections "$(size 1000)" --distinct --hold-ms 15000 ;;
    replay)
      start_holdfast; measure replay replay --tokens "$(size 50000)"
      start_holdfast; measure replay-archive replay --tokens "$(size 50000)" --empty-redis "127.0.0.1:$redis_port" ;;
    embedded)
      local target=(--base "127.0.0.1:$(port)" --adapter holdfast)
      measure embedded embedded --program "$bin/holdfast" --n "$(size 200)" ;;
    # Last, because its agents outlive the server of their tools, and every new worker would try to connect to it.
    tools)
      local body='{"agent_id":"{prep}","input":"{msg}"}'
      measure tools-1 tools --n "$(size 60)" --calls 10 --start-body "$body"
      measure tools-32 tools --n "$(size 300)" --calls 10 --concurrency 32 --start-body "$body" ;;
    *) echo "unknown scenario $1; there are: ${all[*]}" >&2; exit 2 ;;
  esac
}

# Fewer runs and streams, because a peer may be much slower; last, scenarios that may overload it, with shorter runs.
peer() {
  . "$BENCH_PEER"
  stop_holdfast
  who=peer
  start_peer
  measure ttft-1 ttft --n "$(size 150)"
  measure ttft-32 ttft --n "$(size 300)" --concurrency 32
  measure throughput throughput --runs 64 --n "$(size 128)"
  measure jobs jobs --n "$(size 1000)"
  measure resume resume --runs "$(size 500)"
  measure idle-streams idle --connections "$(size 1000)" --hold-ms 15000
  measure watchers-1000 fanout --subscribers "$(size 1000)" --tokens 150
  measure watchers-5000 fanout --subscribers "$(size 5000)" --lead-ms 20000 --tokens 30
  measure idle-runs idle --connections "$(size 500)" --distinct --hold-ms 20000
  measure paced paced --runs "$(size 500)" --tokens 40
}

start_services
start_holdfast
names=("$@")
[ "${names[*]:-all}" = all ] && names=("${all[@]}")
for name in "${names[@]}"; do scenario "$name"; done
[ -z "${BENCH_PEER:-}" ] || peer
show_warnings
python3 benches/table.py "$out"
