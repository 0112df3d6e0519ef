# Shared by run.sh and curves.sh, which source it: a private PostgreSQL and Redis, the fake upstream, Holdfast scaled
# out, and the steps of a measurement. All of it ends with the script.
#   BENCH_BIN=DIR     use the holdfast, loadgen and fake-upstream in this folder, instead of building a release
#   BENCH_SCALE=20    divide the sizes, to see in a minute or two whether everything works; the figures are then worthless
#   BENCH_OUT=FILE    the file of the results, as JSON lines
scale=${BENCH_SCALE:-1}
bin=${BENCH_BIN:-}
if [ -z "$bin" ]; then
  cargo build --release --quiet -p holdfast -p loadgen -p fake-upstream
  bin=$PWD/target/release
fi
mkdir -p "$(dirname "$out")"
: >"$out"
work=$(mktemp -d)
pids=() holdfast=() target=() who=holdfast
ulimit -n "$(ulimit -Hn)"

# size N: N in a real measurement, less when scaled down.
size() { echo $((($1 + scale - 1) / scale)); }
port() { python3 -c 'import socket; s = socket.socket(); s.bind(("127.0.0.1", 0)); print(s.getsockname()[1])'; }
await() {
  for _ in $(seq 400); do
    (exec 3<>"/dev/tcp/127.0.0.1/$1") 2>/dev/null && return
    sleep 0.05
  done
  echo "port $1 did not open" >&2
  tail -n 5 "$work"/*.log >&2
  exit 1
}
# finish PID…: a first SIGTERM, and after 5 s a second one, which ends a Holdfast at once.
finish() {
  kill "$@" 2>/dev/null || true
  for _ in $(seq 100); do
    kill -0 "$@" 2>/dev/null || break
    sleep 0.05
  done
  kill "$@" 2>/dev/null || true
  wait "$@" 2>/dev/null || true
}
stop_all() {
  [ ${#holdfast[@]} = 0 ] || stop_holdfast
  [ -s "$work/pg/postmaster.pid" ] && kill -INT "$(head -1 "$work/pg/postmaster.pid")" 2>/dev/null
  [ ${#pids[@]} = 0 ] || finish "${pids[@]}"
  rm -rf "$work"
}
trap stop_all EXIT

start_services() {
  redis_port=$(port) pg_port=$(port) upstream_port=$(port) api_port=$(port)
  redis-server --port "$redis_port" --bind 127.0.0.1 --save '' --appendonly no --dir "$work" >"$work/redis.log" &
  redis=$!; pids+=("$redis")
  pgbin=$(ls -d /usr/lib/postgresql/*/bin | tail -1)
  local as=()
  if [ "$(id -u)" = 0 ]; then
    # PostgreSQL refuses root.
    as=(setpriv --reuid postgres --regid nogroup --clear-groups); chmod 755 "$work"; install -d -o postgres "$work/pg"
  fi
  (cd / && "${as[@]}" "$pgbin/initdb" -D "$work/pg" -A trust -U postgres >"$work/initdb.log")
  (cd / && exec "${as[@]}" "$pgbin/postgres" -D "$work/pg" -p "$pg_port" -c listen_addresses=127.0.0.1 \
    -c "unix_socket_directories=$work/pg" -c max_connections=200 -c shared_buffers=256MB) >"$work/pg.log" 2>&1 &
  pids+=($!)
  "$bin/fake-upstream" --listen "127.0.0.1:$upstream_port" >"$work/upstream.log" 2>&1 &
  upstream=$!; pids+=("$upstream")
  await "$redis_port"; await "$pg_port"; await "$upstream_port"
  pg=$(head -1 "$work/pg/postmaster.pid")
  until sql postgres -c 'create database holdfast' 2>/dev/null; do sleep 0.1; done
  services="redis=$redis,pg=$pg,upstream=$upstream"
  export DATABASE_URL=postgres://postgres@127.0.0.1:$pg_port/holdfast REDIS_URL=redis://127.0.0.1:$redis_port HOLDFAST_LOG=warn
  export CHAT_MODEL_PROVIDER=openai CHAT_MODEL_NAME=fake OPENAI_BASE_URL=http://127.0.0.1:$upstream_port/v1 OPENAI_API_KEY=none
  export HOLDFAST_ADDR=127.0.0.1:$api_port HOLDFAST_WORKER_CONCURRENCY=${HOLDFAST_WORKER_CONCURRENCY:-2048}
  "$bin/holdfast" migrate
}
# sql DATABASE [psql's flags]
sql() { "$pgbin/psql" -h 127.0.0.1 -p "$pg_port" -U postgres -d "$1" -qv ON_ERROR_STOP=1 "${@:2}"; }

# start_holdfast [WORKERS]: fresh processes, warmed up by runs that are not reported.
start_holdfast() {
  [ ${#holdfast[@]} = 0 ] || stop_holdfast
  "$bin/holdfast" api 2>>"$work/holdfast.log" & local api=$! workers=()
  for _ in $(seq "${1:-1}"); do "$bin/holdfast" worker 2>>"$work/holdfast.log" & workers+=($!); done
  holdfast=("$api" "${workers[@]}")
  await "$api_port"
  servers="api=$api,worker=$(IFS=+; echo "${workers[*]}"),$services"
  target=(--base "127.0.0.1:$api_port" --adapter holdfast)
  "$bin/loadgen" "${target[@]}" jobs --n 200 --concurrency 16 >/dev/null
}
stop_holdfast() { finish "${holdfast[@]}"; holdfast=(); }

# Holdfast's warnings: the last few here, all of them in a file next to the results.
show_warnings() {
  cp "$work/holdfast.log" "${out%.jsonl}.log"
  [ ! -s "$work/holdfast.log" ] || { echo "$(wc -l <"$work/holdfast.log") warnings in ${out%.jsonl}.log, the last:"; tail -n 5 "$work/holdfast.log"; } >&2
}

# fixed_work: ms that a fixed piece of work takes on one core of the idle machine: a measure of the machine's current
# speed.
fixed_work() { python3 -c 'import time; t = time.perf_counter(); sum(i * i for i in range(2_000_000)); print(round((time.perf_counter() - t) * 1e3))'; }

# measure NAME SCENARIO [FLAGS]: one line of results. A scenario that fails is recorded, and the others continue.
measure() {
  local name=$1 before; shift
  before=$(fixed_work)
  echo "[$(date +%T)] $who $name: $*" >&2
  timeout 150 "$bin/loadgen" "${target[@]}" --pids "$servers" --label "$who:$name" --timeout-s 60 "$@" >>"$out" 2>"$work/loadgen.log" || {
    cat "$work/loadgen.log" >&2
    echo "{\"label\":\"$who:$name\",\"scenario\":\"$1\",\"aborted\":true}" >>"$out"
  }
  sed -i "\$ s/}\$/,\"fixed_work_ms\":$before}/" "$out"
}
