"""The prompt of both models, as plain numbers.

A row of the prompt is a text token and Q codes. The rows of a recording's frames hold a slot token
and the frame's codes; every other row holds the pad code Q times. Pieces of text are tokenized
apart:

    im_start, "user\n", "<user_inst>\n- Reference(s):\n",
    references, or "None",
    the fields, the text,
    "\n</user_inst>", im_end, "\n", im_start, "assistant\n", audio_start,
    the recording to continue

A prompt is laid out before its recordings are encoded, so their frames are inserted later.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass, field, fields
from enum import StrEnum
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata_models.moss_tts.config import TokenIds

NOTHING = "None"
"""Stands for absent references and empty fields."""


class MossTokenizer(Protocol):
    """What a prompt needs of a tokenizer. No piece gets tokens in front of it or behind it."""

    def template(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a piece of the prompt's template."""
        ...

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a caller's text, none of them special."""
        ...


class MossMode(StrEnum):
    """What recordings are for; the names are those of the published programs."""

    PLAIN = "plain"
    """There are none."""
    CLONE = "voice_clone"
    """Their speaker is imitated."""
    CONTINUATION = "continuation"
    """The only one is continued."""


@dataclass(frozen=True, slots=True)
class Fields:
    """What is said about the speech besides its text."""

    instruction: str | None = None
    tokens: int | None = None
    """The wanted length in frames."""
    quality: str | None = None
    sound_event: str | None = None
    ambient_sound: str | None = None
    language: str | None = None
    """English name, such as "Chinese"."""

    def rendered(self) -> str:
        """Return the piece of the template between the references and the text."""
        lines = []
        for part in fields(self):
            value = getattr(self, part.name)
            entry = NOTHING if value is None else str(value).strip() or NOTHING
            lines.append(f"\n- {part.name.replace('_', ' ').title()}:\n{entry}")
        return "".join(lines) + "\n- Text:\n"


@dataclass(frozen=True, slots=True)
class Gap:
    """Where a recording's frames are inserted."""

    position: int
    """Number of text rows before them."""
    slot: int
    """Text token of their rows."""


@dataclass(frozen=True, slots=True)
class MossPrompt:
    """A prompt without its recordings' frames."""

    ids: tuple[int, ...]
    """Text tokens of the rows without frames."""
    gaps: tuple[Gap, ...] = field(default=())
    """One per recording, in order."""

    def rows(
        self, recordings: Sequence[NDArray[np.int64]], num_codebooks: int, pad_code: int
    ) -> NDArray[np.int64]:
        """Return the whole prompt.

        Args:
            recordings: [F, Q] frames of each recording.
            num_codebooks: Q.
            pad_code: code of rows without a frame.

        Returns:
            [L, 1 + Q]

        Raises:
            ValueError: the recordings are more or fewer than the gaps, or not of Q codebooks.
        """
        parts, started = list[NDArray[np.int64]](), 0
        for gap, frames in zip(self.gaps, recordings, strict=True):
            if frames.ndim != 2 or frames.shape[1] != num_codebooks:
                raise ValueError(f"frames must be [F, {num_codebooks}], not {list(frames.shape)}")
            parts.append(
                _build_text_rows(self.ids[started : gap.position], num_codebooks, pad_code)
            )
            slots = np.full((len(frames), 1), gap.slot, np.int64)
            parts.append(np.concatenate((slots, frames), axis=1))
            started = gap.position
        parts.append(_build_text_rows(self.ids[started:], num_codebooks, pad_code))
        return np.concatenate(parts)


class MossPromptBuilder:
    """Lays out prompts for one checkpoint."""

    def __init__(self, tokens: TokenIds, tokenizer: MossTokenizer) -> None:
        template = tokenizer.template
        self._tokens = tokens
        self._tokenizer = tokenizer
        self._begin = (
            tokens.im_start,
            *template("user\n"),
            *template("<user_inst>\n- Reference(s):\n"),
        )
        self._nothing = template(NOTHING)
        self._no_fields = template(Fields().rendered())
        self._end = (
            *template("\n</user_inst>"),
            tokens.im_end,
            *template("\n"),
            tokens.im_start,
            *template("assistant\n"),
            tokens.audio_start,
        )

    def build(
        self, text: str, mode: MossMode, *, described: Fields | None = None, references: int = 1
    ) -> MossPrompt:
        """Lay out one prompt.

        Args:
            text: what is spoken; for a continuation, with the transcript (see `joined`).
            described: what is said about the speech; None: nothing.
            references: number of recordings to imitate, for a clone.
        """
        ids, gaps = list(self._begin), list[Gap]()
        if mode is MossMode.CLONE:
            for _ in range(references):
                ids.append(self._tokens.audio_start)
                gaps.append(Gap(len(ids), self._tokens.user_slot))
                ids.append(self._tokens.audio_end)
        else:
            ids += self._nothing
        ids += self._no_fields if described is None else self._described(described)
        ids += self._tokenizer.encode(text)
        ids += self._end
        if mode is MossMode.CONTINUATION:
            gaps.append(Gap(len(ids), self._tokens.assistant_slot))
        return MossPrompt(tuple(ids), tuple(gaps))

    def _described(self, described: Fields) -> tuple[int, ...]:
        # The fields hold a caller's words, and are one piece with the template's.
        return self._tokenizer.encode(described.rendered())


def joined(transcript: str, text: str) -> str:
    """Return a transcript and the text that continues it.

    The published programs put them together as they are. Between words of scripts that separate
    words, a space is missing then, and is added here.
    """
    if not transcript or not text:
        return transcript + text
    last, first = transcript[-1], text[0]
    apart = last.isspace() or first.isspace() or _is_unspaced(last) or _is_unspaced(first)
    return transcript + text if apart else f"{transcript} {text}"


def _is_unspaced(character: str) -> bool:
    """Whether no space goes beside a character: Chinese, Japanese, full-width marks."""
    wide = unicodedata.east_asian_width(character) in "WF"
    return wide and not unicodedata.name(character, "").startswith("HANGUL")


def _build_text_rows(ids: Sequence[int], num_codebooks: int, pad_code: int) -> NDArray[np.int64]:
    rows = np.full((len(ids), 1 + num_codebooks), pad_code, np.int64)
    rows[:, 0] = ids
    return rows


@dataclass(frozen=True, slots=True)
class MossEncoderInput:
    """A recording to imitate or to continue, as it was sent."""

    samples: NDArray[np.float32]
    """[N, C]"""
    sample_rate: int
    """Hz"""


@dataclass(frozen=True, slots=True)
class MossTalkerInput:
    """What to say, and how."""

    prompt: MossPrompt
    """The frames for its gap, if it has one, come from the encoder."""
    continues: bool
    """The recording is continued: its frames prime the decoder."""
    max_frames: int | None
    """None for the published program's limit."""
    sampling: SamplingOptions
