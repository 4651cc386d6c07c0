"""Text as tokens, as the published program makes them."""

from __future__ import annotations

import re
from pathlib import Path

from tokenizers import Tokenizer

from cantata.contract.data.errors import ConfigError

SPACE_MARK = "▁"
UNKNOWN = "<unk>"
_WHITE = re.compile(r"\s+")


class TextTokenizer:
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
