#!/usr/bin/env bash
# The browser tests drive the system's Chromium; install Debian's where there is none.
set -euo pipefail
for name in chromium chromium-browser google-chrome; do
  command -v "$name" >/dev/null && exit 0
done
exec "$(dirname "$0")/apt-install.sh" chromium
