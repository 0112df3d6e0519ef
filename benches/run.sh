#!/usr/bin/env bash
# Measures Holdfast scaled out (1 api, 1 worker, a private PostgreSQL and Redis, the fake upstream and the load generator,
# all on this machine) in a release build, and prints a table. One scenario or all: benches/run.sh [ttft|throughput|…]
# Results as JSON lines: $BENCH_OUT (default: target/bench/results.jsonl). Measure on a quiet machine.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
cargo build --release --quiet -p holdfast -p loadgen -p fake-upstream
bin=$PWD/target/release
out=${BENCH_OUT:-$PWD/target/bench/results.jsonl}
work=$(mktemp -d)
mkdir -p "$(dirname "$out")"
: >"$out"
pids=()
stop() {
  kill "${pids[@]}" 2>/dev/null || true
  sleep 1
  [ -s "$work/pg/postmaster.pid" ] && kill -INT "$(head -1 "$work/pg/postmaster.pid")" 2>/dev/null
  sleep 1
  rm -rf "$work"
}
trap stop EXIT
ulimit -n "$(ulimit -Hn)"

port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() { for _ in $(seq 200); do (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return; sleep 0.05; done; echo "port $1 did not open" >&2; exit 1; }
redis_port=$(port) pg_port=$(port) upstream_port=$(port) api_port=$(port)

redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >"$work/redis.log" &
redis=$!; pids+=("$redis")
pgbin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
as=()
if [ "$(id -u)" = 0 ]; then as=(setpriv --reuid postgres --regid nogroup --clear-groups); chmod 755 "$work"; install -d -o postgres "$work/pg"; fi
(cd / && "${as[@]}" "$pgbin/initdb" -D "$work/pg" -A trust -U postgres >"$work/initdb.log")
(cd / && exec "${as[@]}" "$pgbin/postgres" -D "$work/pg" -p "$pg_port" -c listen_addresses=127.0.0.1 -c "unix_socket_directories=$work/pg" \
  -c max_connections=200 -c shared_buffers=256MB) >"$work/pg.log" 2>&1 &
pids+=($!)
await "$redis_port"; await "$pg_port"
pg=$(head -1 "$work/pg/postmaster.pid")
until "$pgbin/psql" -h 127.0.0.1 -p "$pg_port" -U postgres -qc 'create database holdfast' 2>/dev/null; do sleep 0.1; done

"$bin/fake-upstream" --listen "127.0.0.1:$upstream_port" >"$work/upstream.log" 2>&1 &
upstream=$!; pids+=("$upstream")
await "$upstream_port"
export DATABASE_URL=postgres://postgres@127.0.0.1:$pg_port/holdfast REDIS_URL=redis://127.0.0.1:$redis_port HOLDFAST_LOG=warn
export CHAT_MODEL_PROVIDER=openai CHAT_MODEL_NAME=fake OPENAI_BASE_URL=http://127.0.0.1:$upstream_port/v1 OPENAI_API_KEY=none
export HOLDFAST_ADDR=127.0.0.1:$api_port HOLDFAST_WORKER_CONCURRENCY=${HOLDFAST_WORKER_CONCURRENCY:-2048}
"$bin/holdfast" migrate
"$bin/holdfast" api 2>"$work/api.log" & api=$!; pids+=("$api")
"$bin/holdfast" worker 2>"$work/worker.log" & worker=$!; pids+=("$worker")
await "$api_port"

measure() {
  echo "[$(date +%T)] $*" >&2
  timeout 200 "$bin/loadgen" --base "127.0.0.1:$api_port" --adapter holdfast \
    --pids "api=$api,worker=$worker,redis=$redis,pg=$pg,upstream=$upstream" --label holdfast --timeout-s 60 "$@" >>"$out" ||
    echo "{\"scenario\":\"$1\",\"aborted\":true}" >>"$out"
}
scenario() {
  case $1 in
    ttft) measure ttft --n 300; measure ttft --n 1000 --concurrency 32 ;;
    throughput) measure throughput --runs 64 --n 640 ;;
    paced) measure paced --runs 500 --tokens 100 ;;
    resume) measure resume --runs 500 --tokens 60 ;;
    idle) measure idle --connections 2000 --hold-ms 15000 ;;
    fanout) measure fanout --subscribers 1000 --tokens 40 ;;
    jobs) measure jobs --n 3000 ;;
    tools)
      local body='{"agent_id":"{prep}","input":"{msg}"}'
      measure tools --n 60 --calls 10 --start-body "$body"; measure tools --n 300 --calls 10 --concurrency 32 --start-body "$body" ;;
    *) echo "unknown scenario $1" >&2; exit 2 ;;
  esac
}
for name in "${@:-all}"; do
  if [ "$name" = all ]; then for each in ttft throughput paced resume idle fanout jobs tools; do scenario "$each"; done; else scenario "$name"; fi
done
cat "$work/api.log" "$work/worker.log" >&2
python3 benches/table.py "$out"
