"""The whole server under load, where vLLM can run on the device."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from gpu.closed_loop import ServeRow


class Skipped(Exception):
    """The part cannot be measured here, which is no failure."""


def measure(checkpoint: Path, device: torch.device, tiny: bool) -> Iterator[ServeRow]:
    """Measure one server with one number of streams after another.

    Raises:
        Skipped: vLLM is missing, or it is built for another device.
        RuntimeError: the server did not start.
    """
    check_vllm(device)
    # Where there is no vLLM, what a server needs may be missing too.
    from gpu.closed_loop import serve_and_measure

    yield from serve_and_measure(checkpoint, device.type, tiny)


def check_vllm(device: torch.device) -> None:
    """Raises `Skipped` unless vLLM runs on this device."""
    if importlib.util.find_spec("vllm") is None:
        raise Skipped("vLLM is not installed; requirements/cuda.txt has its CUDA build")
    from vllm.platforms import current_platform

    if current_platform.device_type != device.type:
        raise Skipped(
            f"the installed vLLM is for {current_platform.device_type!r}, not for {device.type!r}; "
            "requirements/cuda.txt has its CUDA build, requirements/cpu.txt that for a CPU"
        )
