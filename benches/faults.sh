#!/usr/bin/env bash
# Random faults for a minute per seed, while clients start runs and reconnect. Checks that nothing acknowledged is lost,
# doubled or out of order, and that every run continues.
# Prints a table; the status is 1 if a promise was broken. Its flags: --help.
#   BENCH_BIN=DIR     use the executables in this folder, instead of building a release
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
bin=${BENCH_BIN:-}
if [ -z "$bin" ]; then
  cargo build --release --quiet -p holdfast
  bin=$PWD/target/release
fi
ulimit -n "$(ulimit -Hn)"
exec python3 -B benches/faults --bin "$bin" "$@"
