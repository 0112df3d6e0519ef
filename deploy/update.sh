#!/usr/bin/env bash
# Replaces the running APIs and workers by containers of the current image and settings. The new ones start beside the old
# ones, which end when the new ones are healthy. docs/operations.md, "Updating", explains the steps.
#
#   docker compose build && deploy/update.sh
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."

# Time-out for new containers to become healthy, in seconds. Holdfast itself waits up to 30 s for its stores.
PATIENCE=${PATIENCE:-90}

compose() { docker compose --profile update "$@"; }
once() { compose run --rm --no-deps -T "$@"; }
say() { echo "update: $*"; }
fail() { echo "update: $*" >&2; exit 1; }

# Waits until all of these containers are healthy; fails after the time-out.
become_healthy() {
  local states
  for ((waited = 0; waited < PATIENCE; waited++)); do
    states=$(docker inspect --format '{{.State.Health.Status}}' "$@") || return 1
    grep -qv '^healthy$' <<<"$states" || return 0
    sleep 1
  done
  return 1
}

# Replaces the only container of a service.
replace() {
  say "replacing $1"
  compose up -d --no-deps --force-recreate "$1" && become_healthy "$(compose ps --all --quiet "$1")"
}

exec 9<"${BASH_SOURCE[0]}"
flock --nonblock 9 || fail "another update is under way"

# Order matters: the script checks the settings before it changes anything.
compose config --quiet || fail "Compose refuses the settings; nothing was changed"
[ -n "$(compose ps --quiet nginx)" ] || fail "nothing runs here; start it with: docker compose up -d --wait"
once worker doctor worker --before-migrate || fail "a worker could not start with these settings; nothing was changed"
once api-3 doctor api --before-migrate || fail "an API could not start with these settings; nothing was changed"
once migrate || fail "could not bring the schema up to date; what ran still runs"

old=$(compose ps --all --quiet worker)
count=$(wc -w <<<"$old")
say "starting as many workers beside the $count that run"
started=0
compose up -d --no-deps --no-recreate --scale "worker=$((count > 0 ? 2 * count : 1))" worker || started=$?
new=$(compose ps --all --quiet worker | grep -vxF "${old:-none}" || true)
# Each id is a word.
# shellcheck disable=SC2086
if [ "$started" != 0 ] || [ -z "$new" ] || ! become_healthy $new; then
  [ -z "$new" ] || { docker logs --tail 5 "${new%%$'\n'*}" >&2; docker rm --force $new >/dev/null; }
  fail "the new workers did not become healthy and were removed; the old ones still run"
fi
# shellcheck disable=SC2086
[ -z "$old" ] || { docker stop $old && docker rm $old; } >/dev/null
# Compose adjusts the number of workers to HOLDFAST_WORKERS.
compose up -d --no-deps --no-recreate worker

if ! replace api-3; then
  docker logs --tail 5 "$(compose ps --all --quiet api-3)" >&2
  compose rm --stop --force api-3
  fail "a new API did not become healthy and was removed; the old ones still run"
fi
for api in api-1 api-2; do
  replace "$api" || fail "the new $api is not healthy; the other one and api-3 serve. See: docker compose logs $api"
done
compose rm --stop --force api-3

# Only a change of its own settings replaces nginx.
compose up -d --no-deps nginx
say "done"
