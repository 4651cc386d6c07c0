"""Sounds, pictures and videos without any pattern, the same on every machine."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np

from cantata_layers.omni.messages import PromptMessage, PromptPicture, PromptSound, Video

RATE = 16_000


def sound(seconds: float, seed: int) -> PromptSound:
    """A sweep with noise."""
    count = int(seconds * RATE)
    time = np.arange(count) / RATE
    noise = np.random.RandomState(seed).random_sample(count) - 0.5
    sweep = np.sin(2 * np.pi * (150 + 90 * seed + 400 * time) * time)
    return PromptSound((0.4 * sweep + 0.1 * noise).astype(np.float32))


def picture(height: int, width: int, seed: int) -> PromptPicture:
    """Noise."""
    return PromptPicture(_bytes((height, width, 3), seed))


def video(frames: int, height: int, width: int, fps: float, seed: int) -> Video:
    """Noise."""
    return Video(_bytes((frames, height, width, 3), seed), fps)


def _bytes(shape: tuple[int, ...], seed: int) -> np.ndarray[tuple[int, ...], np.dtype[np.uint8]]:
    values = np.random.RandomState(seed).random_sample(shape)
    return (values * 255.99).astype(np.uint8)


def film(count: int, height: int, width: int, fps: float, seconds: float, seed: int) -> Video:
    """A video of `count` frames and its sound."""
    return replace(video(count, height, width, fps, seed), sound=sound(seconds, seed))


def collect_sounds(messages: Sequence[PromptMessage]) -> list[PromptSound]:
    """All of a dialogue, those of its videos too, in order."""
    parts = [part for message in messages for part in message.parts]
    heard = [part.sound if isinstance(part, Video) else part for part in parts]
    return [one for one in heard if isinstance(one, PromptSound)]


def has_films(messages: Sequence[PromptMessage]) -> bool:
    """Whether its videos have sound."""
    parts = [part for message in messages for part in message.parts]
    return any(isinstance(part, Video) and part.sound is not None for part in parts)
