"""Rules for leaving out blocks of a denoising step that is close to the step before."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class SkipTest(StrEnum):
    """How to tell that a step is close to the last full one."""

    INPUT = "input"
    """The first block's modulated input: its relative changes since the last full step, each
    mapped by a polynomial, add up to no more than the limit."""
    RESIDUAL = "residual"
    """What the first blocks add: its relative change since the last full step is within the
    limit."""
    INTERVAL = "interval"
    """The last full step is fewer steps ago than the limit."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """A rule that each branch of each picture applies by itself.

    A full step computes every block. Another one computes the first and the last blocks, and takes
    what those between them add from the full steps before.
    """

    test: SkipTest
    limit: float
    warmup_steps: int
    """Number of full steps at the beginning, at least 1. The last step is full, too."""
    first_blocks: int = 0
    last_blocks: int = 0
    order: int = 0
    """Order of the Taylor series through the last full steps; 0 uses the last one as it is."""
    coefficients: tuple[float, ...] | None = None
    """Coefficients of the polynomial of `SkipTest.INPUT`, the highest power first. None: the
    model's own."""
