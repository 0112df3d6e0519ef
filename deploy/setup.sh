#!/usr/bin/env bash
# Makes the files of settings that docker-compose.yml reads, with fresh passwords, for this user's eyes only. It leaves those
# that exist as they are, but for their mode.
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
