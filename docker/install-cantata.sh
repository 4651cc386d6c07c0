#!/usr/bin/env bash
# Install Cantata, its page and the embedded voice: docker/install-cantata.sh cpu|cuda VENV
# For CUDA, VENV/deploy.yaml is solo's deployment with every stage on the GPU, and without vLLM: that
# engine's whole step is torch's, so a CPU can run all of it but the recording (docker/README.md).
set -euo pipefail
cd "$(dirname "$0")/.."
device=$1 venv=$2
"$venv/bin/pip" --disable-pip-version-check --quiet install --no-deps .
if [ "$device" = cuda ]; then
  sed 's/device: cpu/device: cuda/; s/engine: vllm/engine: graphs/' models/cantata_models/solo/deploy.yaml >"$venv/deploy.yaml"
fi
