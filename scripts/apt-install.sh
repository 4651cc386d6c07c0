#!/usr/bin/env bash
# Install Debian packages when we may, else say what to install: scripts/apt-install.sh PACKAGE...
set -euo pipefail
if command -v apt-get >/dev/null && [ "$(id -u)" = 0 ]; then
  run=()
elif command -v apt-get >/dev/null && sudo -n true 2>/dev/null; then
  run=(sudo)
else
  echo "These Debian packages are needed: $*" >&2
  echo "Install them as an administrator (apt-get install $*) and run the command again." >&2
  exit 1
fi
echo "Installing Debian packages: $*"
"${run[@]}" apt-get update -qq
DEBIAN_FRONTEND=noninteractive "${run[@]}" apt-get install -y -qq --no-install-recommends "$@" >/dev/null
