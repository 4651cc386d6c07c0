"""What the request builder gives the recognition stage."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class WhisperInputs:
    """How one window is to be recognised."""

    language: str | None
    """Whisper's own code of the language. None: the model finds out."""
    translate: bool
    prompt: str
    """Text before the window."""
    temperature: float | None
    """0 is greedy. None: greedy, warmer where the result is a loop."""
    timestamps: bool
    """Times of words, and probabilities, are needed."""
    beam_size: int
    """Texts that are followed at a time; 1 is greedy, and takes the least time."""
