"""What a recording says: requests for a transcript, and transcripts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Self

import numpy as np
from numpy.typing import NDArray

SPEECH_RATE = 16_000
"""Sample rate in Hz of all sound that is recognized."""


@dataclass(frozen=True, slots=True)
class TranscriptionRequest:
    """One window of speech, as the api validated the request for it."""

    language: str | None = None
    """BCP 47 tag of what is spoken. None: the model finds out."""
    prompt: str = ""
    """Text that biases names and spelling: what was said before, or names that may occur."""
    translate: bool = False
    """Write it in English."""
    temperature: float | None = None
    """0 is greedy. None: greedy, and warmer where the words would be a loop."""
    timestamps: bool = False
    """The times and probabilities of words are needed."""
    logprobs: bool = False
    """The logarithms of the tokens' probabilities are needed."""
    batch: bool = False
    """Of a file: those who speak at this moment go first."""


@dataclass(frozen=True, slots=True)
class SoundPiece:
    """More sound of a window, on its way to the stage that recognizes it."""

    samples: NDArray[np.float32]
    """[N] mono at `SPEECH_RATE`, in -1..1; N may be 0."""
    recognize: bool = False
    """Recognize what has come so far, without waiting for the window's end."""


@dataclass(frozen=True, slots=True)
class TranscribedWord:
    text: str
    """As written, with its punctuation, without spaces around it."""
    start_s: float
    """Seconds from the window's first sample, as the next."""
    end_s: float
    probability: float
    """0 to 1: the mean of its tokens'."""
    tokens: tuple[int, ...] = ()
    """Numbers in the model's vocabulary."""


@dataclass(frozen=True, slots=True)
class TokenLogprob:
    text: str
    """Tokens that are parts of a character have the replacement character."""
    data: tuple[int, ...]
    """Its bytes in UTF-8."""
    logprob: float
    """Natural logarithm of its probability."""


@dataclass(frozen=True, slots=True)
class Transcript:
    """The words of one window."""

    text: str
    """Without spaces around it; empty: nothing was said."""
    language: str = ""
    """BCP 47 tag; empty: unknown."""
    words: tuple[TranscribedWord, ...] = ()
    """Empty if no timestamps were asked for, or the model has none."""
    logprobs: tuple[TokenLogprob, ...] = ()
    """Of the text's tokens; empty if they were not asked for."""
    avg_logprob: float | None = None
    """Mean logarithm of the tokens' probabilities. None: unknown."""
    no_speech_prob: float | None = None
    """How likely the window holds no speech: 0 to 1. None: unknown."""
    temperature: float = 0.0
    seconds: float = 0.0
    """Length of the sound that it covers, from the window's start."""


@dataclass(frozen=True, slots=True)
class TranscriptUpdate:
    """A transcript on an edge. It replaces earlier ones of its window."""

    tokens: NDArray[np.int32]
    """[T]: the text in the model's vocabulary."""
    transcript: Transcript

    @property
    def units(self) -> int:
        return 1

    @classmethod
    def join(cls, parts: Sequence[Self]) -> Self:
        """The last of the payloads, at least one."""
        return parts[-1]
