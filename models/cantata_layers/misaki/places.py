"""Where the parts of a changed text come from."""

from __future__ import annotations

import re
from difflib import SequenceMatcher

from cantata.contract.data.request import TextSpan

WORD = re.compile(r"\S+")
CHARACTER = re.compile(r"\S")
"""The chunks of a text: those that both texts have keep their places."""


class Places:
    """Where the characters of a changed text come from.

    Between two spaces, what was left as it was keeps its place to the character, and what was
    replaced has the place of everything that it replaced.

    Args:
        written: the text.
        said: the changed text.
        chunk: what is compared; the time for it grows with the square of their number.
    """

    def __init__(self, written: str, said: str, chunk: re.Pattern[str] = WORD) -> None:
        ours, theirs = list(chunk.finditer(written)), list(chunk.finditer(said))
        matcher = SequenceMatcher(
            None, [one[0] for one in ours], [one[0] for one in theirs], autojunk=False
        )
        self._kept: list[tuple[int, int, int]] = []
        self._replaced: list[tuple[int, int, TextSpan]] = []
        for kind, a, b, c, d in matcher.get_opcodes():
            for index in range(c, d):
                start, end = theirs[index].span()
                if kind == "equal":
                    self._kept.append((start, end, ours[a + index - c].start() - start))
                elif ours:
                    source = ours[a:b] or ours[max(a - 1, 0) : max(a, 1)]
                    span = TextSpan(source[0].start(), source[-1].end())
                    self._replaced.append((start, end, span))

    def find(self, start: int, end: int) -> TextSpan:
        """The source of characters [start, end)."""
        found = [span for first, last, span in self._replaced if first < end and last > start]
        for first, last, shift in self._kept:
            if first < end and last > start:
                found.append(TextSpan(max(first, start) + shift, min(last, end) + shift))
        if not found:
            return TextSpan(0, 0)
        return TextSpan(min(span.start for span in found), max(span.end for span in found))
