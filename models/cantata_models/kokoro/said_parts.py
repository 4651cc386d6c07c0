"""What a language's front end makes of a sentence.

Apart from `languages`, which imports packages that English does without.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

from cantata_layers.misaki.sentences import has_sound


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
