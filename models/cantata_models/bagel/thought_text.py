"""A thought's tokens as text. The model writes it between two marks, which are words to it."""

from __future__ import annotations

import re

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata_layers.omni.conversation import TokenReader

OPEN, CLOSE = "<think>", "</think>"
_END = re.compile(rf"\s*{CLOSE}")


class ThoughtReader:
    """Implements `contract.model.conversation.TextReader`: the text without its marks and without
    the spaces next to them."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens = TokenReader(tokenizer)
        self._held = ""
        """Read, and perhaps a part of a mark, or spaces in front of one."""
        self._opened = False
        """It is known whether it begins with a mark."""
        self._begun = False
        """Its first word has come."""

    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, less what may be part of a mark."""
        self._held += self._tokens.read(tokens)
        if not self._begun and not self._begin():
            return ""
        *ended, last = _END.split(self._held)
        cut = _certain(last)
        self._held = last[cut:]
        return "".join(ended) + last[:cut]

    def end(self) -> str:
        """What was held back, less spaces at the end."""
        held, self._held = self._held + self._tokens.end(), ""
        return held.rstrip()

    def _begin(self) -> bool:
        """Whether its first word has come."""
        self._held = self._held.lstrip()
        if not self._opened:
            if OPEN.startswith(self._held) and self._held != OPEN:
                return False
            self._opened, self._held = True, self._held.removeprefix(OPEN).lstrip()
        self._begun = bool(self._held)
        return self._begun


def _certain(text: str) -> int:
    """How many characters at the beginning are neither part of a last mark nor spaces before it."""
    at = text.rfind("<")
    if at < 0 or not CLOSE.startswith(text[at:]):
        at = len(text)
    return len(text[:at].rstrip())
