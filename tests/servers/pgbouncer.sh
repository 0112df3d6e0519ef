#!/usr/bin/env bash
# Makes PgBouncer in two versions, in a folder: Debian 12's own, which leaves the names of prepared statements as they are,
# and Debian 13's, built from its source package, which replaces them. Neither is installed, so neither starts.
set -euo pipefail
mkdir -p "$1"
cd "$1"
log=$PWD/build.log
exec 3>&2 >"$log" 2>&1
trap 'echo "failed to make PgBouncer; see $log" >&3' ERR

[ "$(id -u)" != 0 ] || apt-get update -qq
apt-get download -qq pgbouncer
dpkg -x pgbouncer_*.deb old
rm pgbouncer_*.deb

# The mirror is the system's. The package lists are the folder's own, so that the system keeps its sources.
mirror=$(apt-get indextargets --format '$(REPO_URI) $(ORIGIN) $(COMPONENT)' 'Created-By: Packages' | awk '$2 == "Debian" && $3 == "main" { print $1; exit }')
echo "deb-src [signed-by=/usr/share/keyrings/debian-archive-keyring.gpg] $mirror trixie main" >sources.list
mkdir -p lists/partial
apt=(apt-get -o Dir::Etc::SourceList="$PWD/sources.list" -o Dir::Etc::SourceParts=- -o Dir::State::Lists="$PWD/lists" -o APT::Sandbox::User=root)
"${apt[@]}" update
"${apt[@]}" source --download-only pgbouncer
rm -rf source lists
mkdir source
tar xf pgbouncer_*.orig.tar.gz -C source --strip-components 1
(
  cd source
  ./configure --without-openssl --without-systemd --without-pam
  make -j2 pgbouncer
)
# Order matters: this file means that both are there.
mv source/pgbouncer new
