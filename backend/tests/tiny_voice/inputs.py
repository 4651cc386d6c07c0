"""What the voice's stage gets."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Clause:
    """Words between two pauses, or some of them."""

    words: tuple[int, ...]
    """Their indexes in the request."""
    letters: tuple[int, ...]
    """Of each word."""


@dataclass(frozen=True, slots=True)
class VoiceInput:
    """One text."""

    clauses: tuple[Clause, ...]
    pitch: float
    """Hz."""
    speed: float
