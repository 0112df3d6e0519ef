#!/usr/bin/env bash
# The cost of a run as things grow: workers, conversations, logs, watchers. Prints tables and draws docs/plots/*.svg.
# All or some:
#   benches/curves.sh [workers|conversations|logs|watchers|streams]
# Results: target/bench/curves.jsonl. More settings: services.sh. Measure on a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
out=${BENCH_OUT:-$PWD/target/bench/curves.jsonl}
# One user has all of it, far below its quota.
export HOLDFAST_OWNER_BYTES=1000000000000
. benches/services.sh

workers() {
  who=workers
  for count in 1 2 4 8; do
    start_holdfast "$count"
    measure "$count" throughput --runs 64 --n "$(size 4000)" --tokens 20
  done
}

# An equal number of runs, spread over more and more conversations. Eight at a time, because runs of one conversation
# wait for each other. Then runs in new conversations, beside the ten ended runs of each existing one.
conversations() {
  local made=0
  for count in 10 100 1000 10000 100000; do
    who=conversations
    sql holdfast -v from="$made" -v to="$count" -f benches/conversations.sql
    made=$count
    start_holdfast
    target+=(--conversations "$count" --start-path '/v1/conversations/{conversation}/messages' --start-body '{"content":"{msg}"}')
    measure "$count" throughput --runs 8 --n "$(size 4000)" --tokens 20
    who=ended
    start_holdfast
    measure "$((count * 10))" jobs --n "$(size 8000)" --concurrency 64
  done
}

# Runs of more and more events, 100,000 events in all at each point; then replays, 1,000,000 events in all.
logs() {
  who=logs
  for events in 100 1000 10000 50000 200000; do
    start_holdfast
    measure "$events" replay --tokens "$events" --runs "$(size $((events > 100000 ? 1 : 100000 / events)))" --reads "$(size $((1000000 / events)))" --clients 0
  done
}

watchers() {
  who=watchers
  start_holdfast
  for count in 1 10 100 1000 5000 10000; do
    measure "$count" fanout --subscribers "$count" --tokens "$(size 100)" --lead-ms $((1000 + 2 * count))
  done
}

# Runs with one watcher each, at 2 tokens/s.
streams() {
  who=streams
  for count in 50 500 5000; do
    start_holdfast
    measure "$count" paced --runs "$count" --tokens 20 --interval-us 500000
  done
}

start_services
names=("$@")
[ $# -gt 0 ] || names=(workers conversations logs watchers streams)
for name in "${names[@]}"; do "$name"; done
show_warnings
python3 benches/table.py "$out"
if [ ! -x target/bench/venv/bin/python ]; then
  python3 -m venv target/bench/venv && target/bench/venv/bin/pip install --quiet -r benches/requirements.txt
fi
plots=docs/plots
[ "$scale" = 1 ] || plots=target/bench/plots
target/bench/venv/bin/python -B benches/plot.py "$out" "$plots"
