#!/usr/bin/env bash
# Make the virtual environment and install all that Cantata needs but Cantata itself, so that an edit
# of its code installs none of it again: docker/install-dependencies.sh cpu|cuda VENV
set -euo pipefail
cd "$(dirname "$0")/.."
device=$1 venv=$2

python3 -m venv "$venv"
if [ "$device" = cpu ]; then scripts/install-torch.sh "$venv"; fi
"$venv/bin/pip" --disable-pip-version-check --quiet install --no-deps -r "requirements/$device.txt"

built_for=$("$venv/bin/python" -c 'import torch; print("cuda" if torch.version.cuda else "cpu")')
if [ "$built_for" != "$device" ]; then
  echo "torch was built for $built_for, and this image is for $device" >&2
  exit 1
fi
if [ "$device" = cpu ]; then
  # torch's headers and tests: without a compiler nothing here reads them.
  torch=$("$venv/bin/python" -c 'import torch; print(torch.__path__[0])')
  rm -rf "$torch/include" "$torch/test"
fi
