"""What a language's front end makes of a sentence.

Apart from `dictionaries`, which imports packages that English does without.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Protocol

from cantata.contract.data.request import TextSpan
from cantata_layers.misaki.sentences import has_sound


@dataclass(frozen=True, slots=True)
class Alphabet:
    """What a checkpoint's networks read."""

    vocabulary: Mapping[str, int]
    """Letter -> id of its phone; 0 is the padding."""
    max_phones: int
    """Most phones of a sentence, without the padding."""


WORD = re.compile(r"\S+")
CHARACTER = re.compile(r"\S")
"""The chunks of a text: those that both texts have keep their places."""


class Places:
    """Where the characters of a changed text come from.

    Between two spaces, what was left as it was keeps its place to the character, and what was
    replaced has the place of everything that it replaced.

    Args:
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


@dataclass(frozen=True, slots=True)
class SaidPart:
    """A word, or marks and spaces."""

    phones: str
    """Letters of the checkpoint's vocabulary; others are left out later."""
    start: int
    end: int
    """Of the text, [start, end)."""


class SentenceG2P(Protocol):
    """A language's letters and words to phones. Called from several threads."""

    reads_latin: bool
    """Whether words in Latin letters are its own; otherwise English is read in their place."""

    def read(self, text: str) -> list[SaidPart]:
        """A sentence without markup, part by part; together the phones, spaces and marks of it."""
        ...


def merge_words(parts: Iterable[SaidPart]) -> Iterator[SaidPart]:
    """With one word for what is written as one, such as a number that is said as several."""
    held: SaidPart | None = None
    between = ""
    for part in parts:
        if not has_sound(part.phones) and held is not None:
            between += part.phones
        elif held is not None and part.start < held.end:
            held = SaidPart(held.phones + between + part.phones, held.start, part.end)
            between = ""
        else:
            if held is not None:
                yield held
                yield SaidPart(between, held.end, held.end)
            held, between = part, ""
    if held is not None:
        yield held
        yield SaidPart(between, held.end, held.end)
