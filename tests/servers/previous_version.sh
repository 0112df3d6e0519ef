#!/usr/bin/env bash
# Builds the executable of the version before from git, with which the tests of rolling deploys start.
# It compiles Holdfast's own crates only: the artefacts of the dependencies are linked from target/debug.
#
#   tests/servers/previous_version.sh FOLDER     makes FOLDER/holdfast; ends with 3 if the checkout lacks the commit
set -euo pipefail
cd "$(dirname "${BASH_SOURCE[0]}")/../.."
folder=$1
# The first commit with the schema of version 0.1.
commit=fc549b582d21a13ef0148567d4b839e2d2375c2b

[ ! "$folder/holdfast" -nt tests/servers/previous_version.sh ] || exit 0
git cat-file -e "$commit^{commit}" 2>/dev/null || exit 3
rm -rf "$folder"
mkdir -p "$folder/source" "$folder/build/debug"
git archive "$commit" | tar -x -C "$folder/source"
for part in build deps .fingerprint; do
  cp -al "target/debug/$part" "$folder/build/debug/$part"
  # The crates of both versions have the same names and, to cargo, the same paths.
  find "$folder/build/debug/$part" -maxdepth 1 -name '*holdfast*' -exec rm -rf {} +
done
# With another profile, cargo would compile the dependencies again.
sed -i '/^\[profile\./,$d' "$folder/source/Cargo.toml"
sed -n '/^\[profile\./,$p' Cargo.toml >>"$folder/source/Cargo.toml"
(cd "$folder/source" && CARGO_TARGET_DIR=../build cargo build --quiet --locked --bin holdfast)
mv "$folder/build/debug/holdfast" "$folder/holdfast"
rm -rf "$folder/source" "$folder/build"
