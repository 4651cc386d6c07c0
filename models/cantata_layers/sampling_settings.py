"""How a published model samples by default."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class SamplingSettings:
    """Settings of one level of a frame."""

    temperature: float
    """0 is greedy."""
    top_k: int
    """0 means all."""
    top_p: float
