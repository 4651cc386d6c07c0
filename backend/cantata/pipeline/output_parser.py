"""Splits a model's output into reasoning, text and tool calls."""

from __future__ import annotations

from collections.abc import Iterator

from cantata.contract.chat_service import TextDelta
from cantata.contract.data.chat import CallArguments, CallStarted, Thought
from cantata.contract.model.conversation import CallReader, ThoughtReader

ParsedDelta = Thought | TextDelta | CallStarted | CallArguments


class OutputParser:
    """Of one answer.

    Args:
        thoughts: None: it was not asked to think.
        calls: None: it has no tools.
    """

    def __init__(self, thoughts: ThoughtReader | None, calls: CallReader | None) -> None:
        self._thoughts, self._calls = thoughts, calls
        self._uncounted = 0
        """Tokens of which it is not known yet whether they are thought."""

    def read(self, text: str, tokens: int, *, last: bool) -> Iterator[ParsedDelta]:
        """What some more text says. Its tokens count even if nothing leaves of it yet."""
        if self._thoughts is None and self._calls is None:
            yield TextDelta(text, tokens)
            return
        self._uncounted += tokens
        pieces = list(self._pieces(text, last=last))
        thinks = None if self._thoughts is None else self._thoughts.thinking
        if self._thoughts is None or thinks is not None or last:
            counted, self._uncounted = self._uncounted, 0
            yield Thought("", counted) if thinks else TextDelta("", counted)
        for piece in pieces:
            if isinstance(piece, Thought):
                yield piece
            else:
                yield from self._words(piece)
        if last and self._calls is not None:
            yield from map(_to_delta, self._calls.end())

    def _pieces(self, text: str, *, last: bool) -> Iterator[str | Thought]:
        if self._thoughts is None:
            yield text
            return
        yield from self._thoughts.read(text)
        if last:
            yield from self._thoughts.end()

    def _words(self, text: str) -> Iterator[ParsedDelta]:
        if self._calls is None:
            yield TextDelta(text, 0)
        else:
            yield from map(_to_delta, self._calls.read(text))


def _to_delta(found: str | CallStarted | CallArguments) -> ParsedDelta:
    return TextDelta(found, 0) if isinstance(found, str) else found
