"""A dialogue with media, as the prompt takes it: decoded, not yet made into features."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray


class PromptRole(StrEnum):
    """Who speaks; by its name in the prompt."""

    SYSTEM = "system"
    USER = "user"
    ASSISTANT = "assistant"


@dataclass(frozen=True, slots=True)
class Text:
    """Any text. Control tokens in it have no effect."""

    text: str


@dataclass(frozen=True, slots=True)
class PromptSound:
    """A recording."""

    samples: NDArray[np.float32]
    """[N] mono at 16 kHz, in -1..1."""


@dataclass(frozen=True, slots=True)
class PromptPicture:
    pixels: NDArray[np.uint8]
    """[H, W, 3] red, green, blue."""


@dataclass(frozen=True, slots=True)
class Video:
    frames: NDArray[np.uint8]
    """[T, H, W, 3] red, green, blue, at equal distances in time."""
    fps: float
    """Of `frames`, not of the recording that they were chosen from."""
    sound: PromptSound | None = None
    """Of the same time; None: it is not heard."""


Part = Text | PromptSound | PromptPicture | Video


@dataclass(frozen=True, slots=True)
class PromptMessage:
    """One turn. Only a user's has media."""

    role: PromptRole
    parts: tuple[Part, ...]
