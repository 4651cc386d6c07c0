"""The whole server under load, where its talker's engine can run on the device."""

from __future__ import annotations

import importlib.util
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import torch

if TYPE_CHECKING:
    from gpu.closed_loop import ServeRow


class Skipped(Exception):
    """The part cannot be measured here, which is no failure."""


def measure(
    checkpoint: Path, device: torch.device, tiny: bool, engine: str = "vllm"
) -> Iterator[ServeRow]:
    """Measure one server with one number of streams after another.

    Args:
        engine: of its talker.

    Raises:
        Skipped: something that a server needs is missing, or vLLM is built for another device.
        RuntimeError: the server did not start.
    """
    check_engine(engine, device)
    with missing_packages():
        from gpu.closed_loop import serve_and_measure

    yield from serve_and_measure(checkpoint, device.type, tiny, engine)


@contextmanager
def missing_packages() -> Iterator[None]:
    """Turns an import that fails inside into `Skipped`."""
    try:
        yield
    except ImportError as error:
        raise Skipped(f"a server needs more than is installed: {error}") from error


def check_engine(engine: str, device: torch.device) -> None:
    """Raises `Skipped` unless the talker's engine runs on this device."""
    if engine != "vllm":
        return
    if importlib.util.find_spec("vllm") is None:
        raise Skipped(
            "vLLM is not installed; requirements/cuda.txt has its CUDA build, and --engine graphs "
            "needs none"
        )
    from vllm.platforms import current_platform

    if current_platform.device_type != device.type:
        raise Skipped(
            f"the installed vLLM is for {current_platform.device_type!r}, not for {device.type!r}; "
            "requirements/cuda.txt has its CUDA build, requirements/cpu.txt that for a CPU; "
            "--engine graphs needs none"
        )
