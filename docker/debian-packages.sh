#!/usr/bin/env bash
# Install Debian packages and leave no package lists behind: docker/debian-packages.sh PACKAGE...
set -euo pipefail
"$(dirname "$0")/../scripts/apt-install.sh" "$@"
rm -rf /var/lib/apt/lists/* /var/cache/apt/archives/*.deb
