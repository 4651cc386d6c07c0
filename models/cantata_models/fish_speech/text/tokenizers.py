"""Tokenizes text. A special token spelled in a text is never parsed as one.

S2 has a tokenizer.json, S1 byte-level ranks: a line for each token, base64 and rank.
"""

from __future__ import annotations

import base64
import binascii
from collections.abc import Mapping
from pathlib import Path
from typing import Protocol

import tiktoken
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.qwen_tokenizer import PIECES
from cantata_models.fish_speech.text.special_tokens import (
    SEMANTIC_START,
    SPEAKER_TAG,
    TOKENIZER_FILE,
    Special,
)

RANKS_FILE = "tokenizer.tiktoken"


class TextTokenizer(Protocol):
    """Either layout's."""

    def encode(self, text: str) -> tuple[int, ...]:
        """The tokens of a text, none of them special."""
        ...


class S2Tokenizer:
    """Reads tokenizer.json.

    Raises:
        ConfigError: (on construction) the file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        path = folder / TOKENIZER_FILE
        try:
            self._tokenizer = Tokenizer.from_file(str(path))
        except Exception as error:  # the library raises plain Exception
            raise ConfigError(f"{path}: not a readable tokenizer: {error}") from error
        self._tokenizer.encode_special_tokens = True

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text."""
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)


class S1Tokenizer:
    """Reads tokenizer.tiktoken. No token spans two pieces; pieces are cut as Qwen's are.

    Raises:
        ConfigError: (on construction) the file is missing or damaged.
    """

    def __init__(self, folder: Path) -> None:
        ranks = _read_ranks(folder / RANKS_FILE)
        self._encoding = tiktoken.Encoding(
            "s1", pat_str=PIECES, mergeable_ranks=dict(ranks), special_tokens={}
        )

    def encode(self, text: str) -> tuple[int, ...]:
        """Return the tokens of a text."""
        return tuple(self._encoding.encode_ordinary(text))


def check_plain(text: str, special: Special, field: str) -> None:
    """Refuse special tokens in a caller's text; the published program would parse them.

    Raises:
        InvalidRequest: names the token and the field.
    """
    rest = SPEAKER_TAG.sub("", text)
    names = (*special.ids, SEMANTIC_START)
    if found := next((name for name in names if name in rest), None):
        raise InvalidRequest(
            f"{found!r} is a special token of this model and cannot be spoken; remove it "
            "(valid: <|speaker:0|> and other numbers, [tag] directions)",
            field,
        )


def _read_ranks(path: Path) -> Mapping[bytes, int]:
    try:
        lines = path.read_bytes().split(b"\n")
        ranks = {
            base64.b64decode(token, validate=True): int(rank)
            for token, rank in (line.split() for line in lines if line.strip())
        }
    except (OSError, ValueError, binascii.Error) as error:
        raise ConfigError(f"{path}: no readable tokens and ranks: {error}") from error
    missing = [byte for byte in range(256) if bytes([byte]) not in ranks]
    if missing or len(set(ranks.values())) != len(ranks):
        raise ConfigError(f"{path}: a byte or a rank is missing, or a rank occurs twice")
    return ranks
