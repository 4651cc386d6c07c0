"""What the model writes between `<think>` and `</think>`, which are words to it, and what else."""

from __future__ import annotations

from collections.abc import Callable, Sequence

import numpy as np
from numpy.typing import NDArray
from tokenizers import Tokenizer

from cantata.contract.data.chat import Thought
from cantata_layers.token_text import TokenReader

OPEN, CLOSE = "<think>", "</think>"


class ThoughtSplitter:
    """Implements `contract.model.conversation.ThoughtReader`. A text that does not begin with a
    mark has no thought. Marks are left out, and so are the spaces next to them."""

    def __init__(self) -> None:
        self._held = ""
        """Read, and not told yet."""
        self._step: Callable[[], bool] = self._begin
        """Tells what it can; False: it needs more text."""
        self._parsed: list[Thought | str] = []

    @property
    def thinking(self) -> bool | None:
        """Whether the text is in its thought; None: it may still begin with a mark."""
        if self._step == self._begin:
            return None
        return self._step not in (self._pause, self._read_words)

    def read(self, text: str) -> Sequence[Thought | str]:
        """What some more text says, less what may be part of a mark, or spaces in front of one."""
        self._held += text
        while self._step():
            pass
        return self._take()

    def end(self) -> Sequence[Thought | str]:
        """What was held back, less spaces at the end."""
        if self._step == self._begin:
            self._read_words()
        elif self.thinking:
            self._think(self._held.rstrip())
        return self._take()

    def _take(self) -> list[Thought | str]:
        parsed, self._parsed = self._parsed, []
        return parsed

    def _begin(self) -> bool:
        self._held = self._held.lstrip()
        if OPEN.startswith(self._held) and self._held != OPEN:
            return False
        self._step = self._open if self._held.startswith(OPEN) else self._read_words
        self._held = self._held.removeprefix(OPEN)
        return True

    def _open(self) -> bool:
        self._held = self._held.lstrip()
        if self._held:
            self._step = self._read_inside
        return bool(self._held)

    def _read_inside(self) -> bool:
        before, mark, behind = self._held.partition(CLOSE)
        if mark:
            self._think(before.rstrip())
            self._held, self._step = behind, self._pause
            return True
        cut = _count_certain(self._held)
        self._think(self._held[:cut])
        self._held = self._held[cut:]
        return False

    def _pause(self) -> bool:
        self._held = self._held.lstrip()
        if self._held:
            self._step = self._read_words
        return bool(self._held)

    def _read_words(self) -> bool:
        if self._held:
            self._parsed.append(self._held)
        self._held = ""
        return False

    def _think(self, text: str) -> None:
        if text:
            self._parsed.append(Thought(text, 0))


class BagelThoughtReader:
    """Implements `contract.model.conversation.TextReader` for a text that is nothing but a thought:
    what stands behind the last mark is part of it, on a line of its own."""

    def __init__(self, tokenizer: Tokenizer) -> None:
        self._tokens, self._splitter = TokenReader(tokenizer), ThoughtSplitter()
        self._thought = False
        """Words between marks were the last that left."""

    def read(self, tokens: NDArray[np.int32]) -> str:
        """The text of [T] more tokens, less what may be part of a mark."""
        return self._join(self._splitter.read(self._tokens.read(tokens)))

    def end(self) -> str:
        """What was held back."""
        return self._join(self._splitter.end())

    def _join(self, pieces: Sequence[Thought | str]) -> str:
        text = ""
        for piece in pieces:
            if isinstance(piece, Thought):
                self._thought = True
                text += piece.text
            else:
                text += f"\n{piece}" if self._thought else piece
                self._thought = False
        return text


def _count_certain(text: str) -> int:
    """How many characters at the beginning are neither part of a last mark nor spaces before it."""
    at = text.rfind("<")
    if at < 0 or not CLOSE.startswith(text[at:]):
        at = len(text)
    return len(text[:at].rstrip())
