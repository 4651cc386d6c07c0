"""The tokens of a prompt in both layouts, and what the request builder gives the stages.

S2 has a chat: a system turn, with the recordings' transcripts and codes if there are any, then the
text as a user's turn, behind those that were spoken before. S1 has no template. Segments are
tokenized one by one, as published.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata_models.fish_speech.tokenizers import (
    IM_END,
    IM_START,
    INTERLEAVE,
    SPEAKER,
    SPEAKER_TAG,
    VOICE,
    FishTokenizer,
    Special,
)


@dataclass(frozen=True, slots=True)
class FishEncoderInput:
    """The recordings of the speakers to follow."""

    recordings: tuple[NDArray[np.float32], ...]
    """[N] each, mono at 44.1 kHz."""


@dataclass(frozen=True, slots=True)
class Recorded:
    """Where a recording's frames stand in a prompt."""

    at: int
    """In front of which token."""
    frames: int


@dataclass(frozen=True, slots=True)
class SpokenBefore:
    """Turns that were spoken earlier in the conversation."""

    tokens: tuple[int, ...]
    """Of their text, up to the sound."""
    codes: NDArray[np.int32]
    """[T, Q]: what was said."""
    end: tuple[int, ...]
    """Tokens behind it."""


@dataclass(frozen=True, slots=True)
class FishTalkerInput:
    """A prompt, and how it is spoken."""

    tokens: tuple[int, ...]
    """Of the prompt, less what stands at the places below."""
    recordings: tuple[Recorded, ...]
    """In the order of the tokens."""
    max_frames: int | None
    """None: the published default, as far as there is room."""
    sampling: SamplingOptions
    spoken: tuple[SpokenBefore, ...] = ()
    """The earliest first; the talker leaves out the first ones where there is no room."""
    spoken_at: int = 0
    """In front of which token they stand, behind all recordings."""


TASK = "convert the provided text to speech"
REFERENCE_TASK = f"{TASK} reference to the following:\n\nText:\n"
SPEECH = "\n\nSpeech:\n"


@dataclass(frozen=True, slots=True)
class FishPrompt:
    """Tokens, less those of any codes."""

    tokens: tuple[int, ...]
    recordings_at: tuple[int, ...]
    """In front of which token the codes of each recording stand."""
    spoken_at: int = 0
    """In front of which earlier turns stand."""


class FishPromptBuilder(Protocol):
    """Lays out prompts for one checkpoint."""

    def build(self, text: str, transcripts: Sequence[str]) -> FishPrompt:
        """The prompt of a text, in the voices of the recordings with these transcripts."""
        ...


class S2Prompts:
    """S2's.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: FishTokenizer, special: Special) -> None:
        encode = self._encode = tokenizer.encode
        start, end = special.get_id(IM_START), special.get_id(IM_END)
        self._system = (start, *encode("system\n"))
        self._user = (start, *encode("user\n"))
        self.end = (end, *encode("\n"))
        """Of every turn."""
        self._reply = (start, *encode("assistant\n"), special.get_id(VOICE))

    def build(self, text: str, transcripts: Sequence[str]) -> FishPrompt:
        system: tuple[int, ...] = self._system
        recordings_at: tuple[int, ...] = ()
        if not transcripts:
            system += self._encode(TASK)
        else:
            tagged = (with_speaker(text, number) for number, text in enumerate(transcripts))
            for part in (REFERENCE_TASK, "\n".join(tagged), SPEECH):
                system += self._encode(part)
            recordings_at = (len(system),) * len(transcripts)
        system += self.end
        return FishPrompt(system + self.turn(text), recordings_at, len(system))

    def turn(self, text: str) -> tuple[int, ...]:
        """Return a user's turn and the beginning of its reply."""
        return (*self._user, *self._encode(text), *self.end, *self._reply)


class S1Prompts:
    """S1's. All its recordings are of one speaker.

    Raises:
        ConfigError: (on construction) the tokenizer lacks a token of the template.
    """

    def __init__(self, tokenizer: FishTokenizer, special: Special) -> None:
        self._encode = tokenizer.encode
        self._begin = (special.get_id(INTERLEAVE),)
        self._end = (special.get_id(IM_END),)
        first = SPEAKER.format(0)
        known = special.ids.get(first)
        self._speaker = tokenizer.encode(first) if known is None else (known,)

    def build(self, text: str, transcripts: Sequence[str]) -> FishPrompt:
        tokens: tuple[int, ...] = self._begin
        recordings_at = []
        for transcript in transcripts:
            tokens += self._speaker + self._encode(transcript)
            recordings_at.append(len(tokens))
            tokens += self._end
        return FishPrompt(tokens + self._speaker + self._encode(text), tuple(recordings_at))


def with_speaker(transcript: str, number: int) -> str:
    """Return a transcript with the tag of its speaker, which it may have already."""
    tagged = SPEAKER_TAG.search(transcript)
    return transcript if tagged else f"{SPEAKER.format(number)}{transcript}"
