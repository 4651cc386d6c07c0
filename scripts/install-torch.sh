#!/usr/bin/env bash
# Install PyTorch's CPU build into a virtual environment: scripts/install-torch.sh VENV
# TORCH: another build, as pip names it (`torch==2.13.0` is PyPI's, for NVIDIA's GPUs).
# TORCH_INDEX: address of PyTorch's own index of CPU wheels, where pip finds no CPU build by itself.
set -euo pipefail
if ! "$1/bin/pip" --disable-pip-version-check --quiet install \
  ${TORCH_INDEX:+--extra-index-url "$TORCH_INDEX"} "${TORCH:-torch==2.13.0+cpu}"; then
  echo "pip found no ${TORCH:-CPU build of torch 2.13.0}. Give TORCH_INDEX, the address of PyTorch's index of" >&2
  echo "CPU wheels (pytorch.org, 'Get Started', compute platform CPU): make TORCH_INDEX=..." >&2
  exit 1
fi
