"""Markup in a text that arrives in pieces."""

from __future__ import annotations

import re
from collections.abc import Iterable

from cantata.contract.data.request import TextSpan
from cantata.text.patterns import OPEN, OPEN_WORD, OPEN_WORD_INSIDE, TOKENS, TOKENS_INSIDE
from cantata.text.reading import MarkupReader

_CLOSED = frozenset(
    (
        "autolink",
        "break",
        "code",
        "element",
        "formula",
        "hidden",
        "kept",
        "link",
        "literal",
        "pause",
        "placeholder",
    )
)
_WITH_CONTENT = frozenset(("phoneme", "say-as", "script", "style", "sub"))
_CONTEXT = 16
"""Characters before a mark that decide what the mark is."""


def find_markup_spans(text: str) -> list[TextSpan]:
    """The spans of markup in a text that is still arriving, in order; it must not be cut there.

    The last span may be of markup whose end has not arrived yet.
    """
    tokens = list(TOKENS.finditer(text))
    settled = _find_unfinished(text, 0, OPEN, tokens)
    spans = [TextSpan(*found.span()) for found in tokens if found.start() < settled]
    return [*spans, TextSpan(settled, len(text))] if settled < len(text) else spans


class ArrivingMarkup:
    """Reads a text's markup while the text arrives; together the pieces are what `strip_markup`
    makes of it.

    Pauses become spaces: a model that takes text while it speaks cannot pause on demand.
    """

    def __init__(self) -> None:
        self._text = ""
        self._read = 0
        """Characters of `_text` that were returned; the last few are kept as context."""
        self._whole = True
        """Whether `_text` begins where the whole text began."""

    def push(self, text: str) -> str:
        """Add text; returns the part of the spoken text that is now certain, maybe nothing."""
        self._text += text
        unfinished = OPEN_WORD if self._whole else OPEN_WORD_INSIDE
        tokens = TOKENS if self._whole else TOKENS_INSIDE
        found = tokens.finditer(self._text, self._read)
        return self._take(_find_unfinished(self._text, self._read, unfinished, found))

    def close(self) -> str:
        """End the text, and return its rest."""
        return self._take(len(self._text))

    def _take(self, end: int) -> str:
        reader = MarkupReader(pauses=False)
        self._read = reader.read(self._text, self._read, end, line_start=self._whole)
        dropped = max(0, self._read - _CONTEXT)
        if dropped:
            self._text, self._read, self._whole = self._text[dropped:], self._read - dropped, False
        return reader.text


def _find_unfinished(
    text: str, start: int, pattern: re.Pattern[str], tokens: Iterable[re.Match[str]]
) -> int:
    """Where a possible beginning of markup stands; the text's length if there is none.

    Args:
        start: where to look from.
        pattern: of unfinished markup, up to the text's end.
        tokens: complete markup from `start` on, in order.
    """
    found = pattern.search(text, start)
    for token in tokens:
        if found is None or found.start() < token.start():
            break
        if found.start() < token.end() < len(text) and _is_closed(token):
            found = pattern.search(text, token.end())
    return found.start() if found else len(text)


def _is_closed(token: re.Match[str]) -> bool:
    """Whether complete markup stays as it is, whatever text follows."""
    if token.lastgroup == "tag":
        return token["name"].lower() not in _WITH_CONTENT
    return token.lastgroup in _CLOSED
