"""Tokenizes text, whole or as it arrives. Control tokens in a caller's text have no effect."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_tokenizer import load_qwen_tokenizer

UNSETTLED_PIECES = 2
"""If more text follows, the last piece may grow, and a combining mark may join the one before."""


class TextTokenizer:
    """A checkpoint's tokenizer.

    Raises:
        ConfigError: a file is missing or damaged, or a word of the prompt template is not a
            single token.
    """

    def __init__(self, checkpoint: Path) -> None:
        self._tokenizer = load_qwen_tokenizer(checkpoint)
        self.role = self._template("<|im_start|>", "assistant", "\n")
        """The tokens before the spoken text."""
        self._user = self._template("<|im_start|>", "user", "\n")
        self._end = self._template("<|im_end|>", "\n")

    def encode(self, text: str) -> tuple[int, ...]:
        return tuple(self._tokenizer.encode(text, add_special_tokens=False).ids)

    def instruction(self, text: str) -> tuple[int, ...]:
        """Return the tokens of an instruction in its template, none if it is empty."""
        body = self.encode(text.strip())
        return (*self._user, *body, *self._end) if body else ()

    def settled(self, text: str) -> int:
        """Return how many characters of an incomplete text can already be encoded."""
        pieces = self._tokenizer.pre_tokenizer.pre_tokenize_str(text)
        if len(pieces) <= UNSETTLED_PIECES:
            return 0
        _, (start, _) = pieces[-UNSETTLED_PIECES]
        return int(start)

    def normalize(self, text: str) -> str:
        """Return the text in the form that is split into pieces."""
        normalized: str = self._tokenizer.normalizer.normalize_str(text)
        return normalized

    def _template(self, *words: str) -> tuple[int, ...]:
        ids = []
        for word in words:
            found = self._tokenizer.token_to_id(word)
            encoded = (found,) if found is not None else self.encode(word)
            if len(encoded) != 1:
                raise ConfigError(f"the tokenizer has no single token for {word!r}")
            ids.append(encoded[0])
        return tuple(ids)


class ArrivingText:
    """Tokenizes text that arrives in parts, with the same tokens as for the whole text."""

    def __init__(self, tokenizer: TextTokenizer) -> None:
        self._tokenizer = tokenizer
        self._waiting = ""
        self._started = False

    def push(self, text: str) -> tuple[int, ...]:
        """Add text and return the tokens that are now final."""
        waiting = self._waiting + text
        waiting = self._tokenizer.normalize(waiting if self._started else waiting.lstrip())
        settled = self._tokenizer.settled(waiting)
        self._waiting = waiting[settled:]
        return self._encode(waiting[:settled])

    def close(self) -> tuple[int, ...]:
        """Complete the text and return its last tokens."""
        rest, self._waiting = self._waiting.rstrip(), ""
        return self._encode(rest)

    def _encode(self, text: str) -> tuple[int, ...]:
        self._started = self._started or bool(text)
        return self._tokenizer.encode(text)
