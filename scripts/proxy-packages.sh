#!/usr/bin/env bash
# Unpack Debian's nginx and Caddy where tests find them, without installing them: an installed one
# would start as a service. Without apt-get or a network, their test is left out.
# scripts/proxy-packages.sh FOLDER
set -euo pipefail
folder=$1
if [ -e "$folder/.complete" ]; then exit 0; fi
mkdir -p "$folder"
cd "$folder"
if ! command -v apt-get >/dev/null || ! apt-get download -qq nginx caddy 2>/dev/null; then
  echo "nginx and Caddy will not be tested: apt-get cannot download them" >&2
  exit 0
fi
for package in nginx_*.deb caddy_*.deb; do dpkg-deb --extract "$package" .; done
rm ./*.deb
touch .complete
