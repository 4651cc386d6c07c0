"""What rank 0 of a denoiser tells the others. All ranks get the same jobs in the same order."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.chunks import Payload
from cantata.contract.data.request import StageInput
from cantata.contract.model.denoiser import DenoiserOptions

MODULE = "cantata.stages.diffusion.ranks.main"
"""Of the other ranks' processes."""


@dataclass(frozen=True, slots=True)
class LoadModel:
    """The first message: which model to load."""

    title: str
    factory: str
    """`package.module:function`."""
    checkpoint: Path
    options: DenoiserOptions
    """The options, with the receiver's own rank."""
    store_port: int
    """Where the ranks find each other, on this machine's loopback."""


@dataclass(frozen=True, slots=True)
class Begin:
    """Make a job."""

    number: int
    inputs: StageInput
    arrived: Mapping[str, Payload]


@dataclass(frozen=True, slots=True)
class Advance:
    """Compute a step of these jobs."""

    numbers: tuple[int, ...]


@dataclass(frozen=True, slots=True)
class Forget:
    """Free a job; nobody holds it any longer."""

    number: int


RankMessage = Begin | Advance | Forget
"""What a rank obeys once it has loaded."""
