"""Splits a transcript into the words that the aligner takes: letters and digits alone."""

from __future__ import annotations

import unicodedata
from dataclasses import dataclass
from itertools import pairwise

ALIGNED = frozenset({"zh", "en", "yue", "fr", "de", "it", "pt", "ru", "es"})
"""Languages that the aligner knows. It knows Japanese and Korean too, by the words of programs that
are not here."""
_IDEOGRAPHS = (
    (0x3400, 0x4DBF),
    (0x4E00, 0x9FFF),
    (0xF900, 0xFAFF),
    (0x20000, 0x2A6DF),
    (0x2A700, 0x2CEAF),
    (0x2F800, 0x2FA1F),
)
"""First and last code points; each such character is a word."""


@dataclass(frozen=True, slots=True)
class SpokenUnit:
    spoken: str
    """As the aligner takes it: letters, digits and apostrophes."""
    written: str
    """As the transcript has it, with its punctuation, without spaces around it."""


def split_words(text: str) -> list[SpokenUnit]:
    """Split at spaces and around ideographs."""
    spans: list[tuple[str, int, int]] = []
    letters, start, end = "", 0, 0
    for place, character in enumerate(text):
        alone = _is_ideograph(character)
        if letters and (alone or character.isspace()):
            spans.append((letters, start, end))
            letters = ""
        if alone:
            spans.append((character, place, place + 1))
        elif _is_spoken(character):
            start = start if letters else place
            letters, end = letters + character, place + 1
    if letters:
        spans.append((letters, start, end))
    return _with_punctuation(text, spans)


def _with_punctuation(text: str, spans: list[tuple[str, int, int]]) -> list[SpokenUnit]:
    """What stands between two words belongs to the first of them, but for what touches the
    second."""
    cuts = [0]
    for (_, _, end), (_, start, _) in pairwise(spans):
        between = text[end:start]
        spaces = [place for place, character in enumerate(between) if character.isspace()]
        cuts.append(end + spaces[-1] + 1 if spaces else start)
    cuts.append(len(text))
    return [
        SpokenUnit(spoken, text[cut:following].strip())
        for (spoken, _, _), (cut, following) in zip(spans, pairwise(cuts), strict=False)
    ]


def _is_spoken(character: str) -> bool:
    return character == "'" or unicodedata.category(character)[0] in "LN"


def _is_ideograph(character: str) -> bool:
    return any(first <= ord(character) <= last for first, last in _IDEOGRAPHS)
