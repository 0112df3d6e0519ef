#!/usr/bin/env bash
# Creates the settings files that docker-compose.yml reads, with new passwords, readable by this user only. It changes nothing
# but the mode of existing files.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
umask 077

password() { od -An -N24 -tx1 /dev/urandom | tr -d ' \n'; }

for file in .env deploy/holdfast.env deploy/api.env deploy/worker.env; do
  if [ ! -e "$file" ]; then
    sed -e "s/^POSTGRES_PASSWORD=\$/&$(password)/" -e "s/^REDIS_PASSWORD=\$/&$(password)/" "$file.example" >"$file"
    echo "setup: made $file"
  fi
  chmod 600 "$file"
done
