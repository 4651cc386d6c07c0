"""Tokenizes text. A special token spelled in a text is never parsed as one.

S2 has a tokenizer.json, S1 byte-level ranks: a line for each token, base64 and rank.
"""

from __future__ import annotations

import base64
import binascii
import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Protocol

import tiktoken
from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_tokenizer import PIECES

TOKENIZER_FILE = "tokenizer.json"
SPECIAL_FILE = "special_tokens.json"
IM_START, IM_END = "<|im_start|>", "<|im_end|>"
VOICE, INTERLEAVE = "<|voice|>", "<|interleave|>"
SPEAKER = "<|speaker:{}|>"
SPEAKER_TAG = re.compile(r"<\|speaker:\d+\|>")
"""Text like any other, so a caller may write it."""
SEMANTIC = "<|semantic:{}|>"
SEMANTIC_START = "<|semantic:"


@dataclass(frozen=True, slots=True)
class Special:
    """Special tokens by name, less the semantic ones, which stand for the codes of codebook 0."""

    ids: Mapping[str, int]
    semantic_begin: int
    """The id of code 0; the others follow."""
    semantic_count: int

    def get_id(self, name: str) -> int:
        """The token of a prompt's template.

        Raises:
            ConfigError: there is none.
        """
        if name not in self.ids:
            raise ConfigError(f"the tokenizer has no special token {name!r}")
        return self.ids[name]

    @property
    def end(self) -> int:
        """The token that ends speech."""
        return self.get_id(IM_END)


def read_special_tokens(folder: Path) -> Special:
    """Read a checkpoint's special tokens.

    Raises:
        ConfigError: a file cannot be read, or the semantic tokens are missing or scattered.
    """
    path = folder / SPECIAL_FILE
    ids = _read_vocabulary(path) if path.exists() else _read_added_tokens(folder / TOKENIZER_FILE)
    if IM_END not in ids:
        raise ConfigError(f"{folder}: the tokenizer has no special token {IM_END!r}")
    semantic = {name: token for name, token in ids.items() if name.startswith(SEMANTIC_START)}
    begin = ids.get(SEMANTIC.format(0))
    if begin is None:
        raise ConfigError(f"{folder}: the tokenizer has no special token {SEMANTIC.format(0)!r}")
    expected = {SEMANTIC.format(code): begin + code for code in range(len(semantic))}
    if semantic != expected:
        raise ConfigError(f"{folder}: the tokens {SEMANTIC.format('...')} are not consecutive")
    others = {name: token for name, token in ids.items() if name not in semantic}
    return Special(others, begin, len(semantic))


def _read_vocabulary(path: Path) -> Mapping[str, int]:
    """Read a JSON object of names and ids."""
    fields = read_json(path)
    return {name: fields.get(name, int) for name in fields.values}


def _read_added_tokens(path: Path) -> Mapping[str, int]:
    """Read the added tokens of a tokenizer.json."""
    tokens = read_json(path).sections("added_tokens")
    return {token.get("content", str): token.get("id", int) for token in tokens}


RANKS_FILE = "tokenizer.tiktoken"


class FishTokenizer(Protocol):
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
