"""The special tokens of a checkpoint: in tokenizer.json (S2) or special_tokens.json (S1)."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import read_json

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
    ids = _listed(path) if path.exists() else _added(folder / TOKENIZER_FILE)
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


def _listed(path: Path) -> Mapping[str, int]:
    """Read a JSON object of names and ids."""
    fields = read_json(path)
    return {name: fields.get(name, int) for name in fields.values}


def _added(path: Path) -> Mapping[str, int]:
    """Read the added tokens of a tokenizer.json."""
    tokens = read_json(path).sections("added_tokens")
    return {token.get("content", str): token.get("id", int) for token in tokens}
