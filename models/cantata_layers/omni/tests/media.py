"""Sounds, pictures and videos without any pattern, the same on every machine."""

from __future__ import annotations

import numpy as np

from cantata_layers.omni.messages import Picture, Sound, Video

RATE = 16_000


def sound(seconds: float, seed: int) -> Sound:
    """A sweep with noise."""
    count = int(seconds * RATE)
    time = np.arange(count) / RATE
    noise = np.random.RandomState(seed).random_sample(count) - 0.5
    sweep = np.sin(2 * np.pi * (150 + 90 * seed + 400 * time) * time)
    return Sound((0.4 * sweep + 0.1 * noise).astype(np.float32))


def picture(height: int, width: int, seed: int) -> Picture:
    """Noise."""
    return Picture(_bytes((height, width, 3), seed))


def video(frames: int, height: int, width: int, fps: float, seed: int) -> Video:
    """Noise."""
    return Video(_bytes((frames, height, width, 3), seed), fps)


def _bytes(shape: tuple[int, ...], seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    values = np.random.RandomState(seed).random_sample(shape)
    return (values * 255.99).astype(np.uint8)
