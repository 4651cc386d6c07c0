"""The whole server under an open load: requests arrive at random, whatever was heard so far."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import torch

from gpu.serve import check_engine, missing_packages

if TYPE_CHECKING:
    from gpu.arrivals import OpenRow


def measure(
    checkpoint: Path, device: torch.device, tiny: bool, engine: str = "vllm"
) -> Iterator[OpenRow]:
    """One rate after another on one server, then 64 streams in a closed loop.

    Args:
        engine: of its talker.

    Raises:
        Skipped: something that a server needs is missing, or vLLM is built for another device.
        RuntimeError: the server did not start.
    """
    check_engine(engine, device)
    with missing_packages():
        from gpu.arrivals import serve_and_measure

    yield from serve_and_measure(checkpoint, device.type, tiny, engine)
