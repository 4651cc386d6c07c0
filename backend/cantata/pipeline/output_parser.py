"""Splits a model's output into reasoning, text and tool calls."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.chat_service import AnswerDelta
from cantata.contract.data.chat import CallArguments, CallStarted, Thought
from cantata.contract.model.conversation import AnswerParser, CallReader, TextReader, ThoughtReader

ParsedDelta = Thought | AnswerDelta | CallStarted | CallArguments


class OutputParser(Protocol):
    """Reads the tokens of one answer."""

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Iterator[ParsedDelta]:
        """What [T] more tokens say. They count even if nothing leaves of them yet."""
        ...


class ParsedOutput:
    """Implements `OutputParser` over a model's own parser."""

    def __init__(self, parser: AnswerParser) -> None:
        self._parser = parser

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Iterator[ParsedDelta]:
        pieces = self._parser.read(tokens, last=last)
        count = len(tokens)
        yield Thought("", count) if self._parser.thinking else AnswerDelta("", count)
        for piece in pieces:
            yield piece if isinstance(piece, Thought) else _to_delta(piece)


class MarkedOutput:
    """Implements `OutputParser` for text with marks.

    Args:
        thoughts: None: it was not asked to think.
        calls: None: it has no tools.
    """

    def __init__(
        self, reader: TextReader, thoughts: ThoughtReader | None, calls: CallReader | None
    ) -> None:
        self._reader = reader
        self._thoughts, self._calls = thoughts, calls
        self._uncounted = 0
        """Tokens of which it is not known yet whether they are thought."""

    def read(self, tokens: NDArray[np.int32], *, last: bool) -> Iterator[ParsedDelta]:
        text = self._reader.read(tokens) + (self._reader.end() if last else "")
        if self._thoughts is None and self._calls is None:
            yield AnswerDelta(text, len(tokens))
            return
        self._uncounted += len(tokens)
        pieces = list(self._split(text, last=last))
        thinks = None if self._thoughts is None else self._thoughts.thinking
        if self._thoughts is None or thinks is not None or last:
            counted, self._uncounted = self._uncounted, 0
            yield Thought("", counted) if thinks else AnswerDelta("", counted)
        for piece in pieces:
            if isinstance(piece, Thought):
                yield piece
            else:
                yield from self._parse_text(piece)
        if last and self._calls is not None:
            yield from map(_to_delta, self._calls.end())

    def _split(self, text: str, *, last: bool) -> Iterator[str | Thought]:
        if self._thoughts is None:
            yield text
            return
        yield from self._thoughts.read(text)
        if last:
            yield from self._thoughts.end()

    def _parse_text(self, text: str) -> Iterator[ParsedDelta]:
        if self._calls is None:
            yield AnswerDelta(text, 0)
        else:
            yield from map(_to_delta, self._calls.read(text))


def _to_delta(found: str | CallStarted | CallArguments) -> ParsedDelta:
    return AnswerDelta(found, 0) if isinstance(found, str) else found
