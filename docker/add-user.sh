#!/usr/bin/env bash
# Add the user that the server runs as, and the folder of uploaded voices: docker/add-user.sh NAME ID
set -euo pipefail
useradd --create-home --uid "$2" --user-group --shell /usr/sbin/nologin "$1"
install -d -o "$1" -g "$1" -m 0700 /var/lib/cantata /var/lib/cantata/voices
