#!/usr/bin/env bash
# Compares this commit with an earlier one: builds a release of each, measures both in turn, and prints the ratios of
# their medians.
#   benches/compare.sh BASE                   all scenarios of run.sh, five times each: two hours
#   benches/compare.sh BASE jobs throughput   some of them
#   COMPARE_ROUNDS=3    other than five rounds
# Results: target/bench/compare/*.jsonl. The load generator and the provider are those of this commit.
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/.."
base=$(git rev-parse --verify "${1:?the commit to compare with}^{commit}")
shift
rounds=${COMPARE_ROUNDS:-5}
results=$PWD/target/bench/compare
mkdir -p "$results/base" "$results/head"
rm -f "$results"/*.jsonl

cargo build --release --quiet -p holdfast -p loadgen -p fake-upstream
cp target/release/{holdfast,loadgen,fake-upstream} "$results/head"
tree=$(mktemp -d)
trap 'git worktree remove --force "$tree/code" 2>/dev/null || true; rm -rf "$tree"' EXIT
git worktree add --quiet --detach "$tree/code" "$base"
(cd "$tree/code" && cargo build --release --quiet -p holdfast --target-dir "$results/build")
cp "$results/build/release/holdfast" target/release/{loadgen,fake-upstream} "$results/base"

for round in $(seq "$rounds"); do
  for side in base head; do
    echo "[$(date +%T)] round $round of $rounds: $side" >&2
    BENCH_BIN=$results/$side BENCH_OUT=$results/$side-$round.jsonl benches/run.sh "${@:-all}" >"$results/$side-$round.txt"
  done
done
python3 benches/ratios.py "$results"
