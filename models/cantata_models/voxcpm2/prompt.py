"""A text as tokens, as the published program makes them, and the stages' inputs."""

from __future__ import annotations

import re
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError
from cantata.contract.data.request import SamplingOptions

SPACE_MARK = "▁"
UNKNOWN = "<unk>"
_WHITE = re.compile(r"\s+")


class VoxCpm2Tokenizer:
    """A checkpoint's tokenizer.json.

    A special token spelled in a text is not one: it is encoded as ordinary characters.

    Raises:
        ConfigError: (on construction) the file is missing or damaged.
    """

    def __init__(self, checkpoint: Path) -> None:
        path = checkpoint / "tokenizer.json"
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f"{path}: no readable tokenizer: {error}") from error
        self._tokenizer.encode_special_tokens = True
        unknown = self._tokenizer.token_to_id(UNKNOWN)
        if unknown is None:
            raise ConfigError(f"{path}: has no token {UNKNOWN!r}")
        self._unknown: int = unknown
        vocabulary = self._tokenizer.get_vocab()
        self._words = {token for token in vocabulary if len(token) > 1 and _is_chinese(token)}

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens, with each Chinese word as its characters, and without a beginning."""
        encoded = self._tokenizer.encode(text, add_special_tokens=False)
        tokens: list[int] = []
        for token, index in zip(encoded.tokens, encoded.ids, strict=True):
            word = token.replace(SPACE_MARK, "")
            tokens += map(self._get_id, word) if word in self._words else [index]
        return tuple(tokens)

    def _get_id(self, character: str) -> int:
        index = self._tokenizer.token_to_id(character)
        return self._unknown if index is None else index


def in_one_line(text: str) -> str:
    """Return the text with every run of white space as one space."""
    return _WHITE.sub(" ", text)


def _is_chinese(token: str) -> bool:
    return all("\u4e00" <= character <= "\u9fff" for character in token)


DEFAULT_STEPS = 10
"""Of the solver, as published."""


class VoxCpm2Mode(StrEnum):
    """What a request does with a recording."""

    PLAIN = "plain"
    """There is none."""
    CLONE = "voice_clone"
    """It imitates the speaker."""
    CONTINUATION = "continuation"
    """It goes on speaking where the recording ends."""
    COMBINED = "combined"
    """Both, with the same recording."""

    @property
    def imitates(self) -> bool:
        """Whether the recording stands before the text."""
        return self in (VoxCpm2Mode.CLONE, VoxCpm2Mode.COMBINED)

    @property
    def continues(self) -> bool:
        """Whether the recording stands behind the text."""
        return self in (VoxCpm2Mode.CONTINUATION, VoxCpm2Mode.COMBINED)


@dataclass(frozen=True, slots=True)
class VoxCpm2EncoderInput:
    """A recording of a speaker."""

    samples: NDArray[np.float32]
    """[N] mono."""
    sample_rate: int
    """Hz, the recording's own."""
    mode: VoxCpm2Mode
    """Where its latents are needed; not `PLAIN`."""


@dataclass(frozen=True, slots=True)
class VoxCpm2TalkerInput:
    """What to say, and how."""

    text: tuple[int, ...]
    """Tokens: a transcript that is continued, and the text."""
    mode: VoxCpm2Mode
    max_frames: int
    """Patches; fewer if there is no room."""
    steps: int
    """Of the solver, for each patch."""
    guidance: float
    sampling: SamplingOptions
    """Its seed alone matters."""
