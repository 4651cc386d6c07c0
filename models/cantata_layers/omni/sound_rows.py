"""How many rows of a recording the audio encoder makes that Qwen3-Omni and its kin have."""

from __future__ import annotations

WINDOW_FRAMES, WINDOW_ROWS = 100, 13
"""Mel frames that the audio encoder's convolutions take at once, and the rows that they make."""


def sound_rows(frames: int) -> int:
    """Rows that the audio encoder makes of so many mel frames: each window by itself, halved three
    times, and rounded up each time."""
    whole, rest = divmod(frames, WINDOW_FRAMES)
    for _ in range(3):
        rest = -(-rest // 2)
    return WINDOW_ROWS * whole + rest
