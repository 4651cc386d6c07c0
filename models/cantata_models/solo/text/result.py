"""The front end's result: sentences, and their words with the characters they came from."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class Word:
    """One spoken word.

    The spans of a text's words are in order. Any two spans are either equal or disjoint: the words
    of "$3.50" share one span. A character that folds to several ("㎏") belongs entirely to its
    word, and so do the marks after a letter.
    """

    text: str
    """The caller's characters that this word came from."""
    start: int
    end: int
    """Character offsets [start, end) in the caller's text, before any folding."""
    phones: tuple[str, ...]
    """ARPAbet without stress, from `PHONES`."""


@dataclass(frozen=True, slots=True)
class Sentence:
    """One stretch of speech. The first two tuples have the same length."""

    phones: tuple[str, ...]
    """All words' phones, with SIL at the start, at the end and where punctuation pauses."""
    word_starts: tuple[bool, ...]
    """True on a word's first phone."""
    question: bool
    words: tuple[Word, ...]


Clause = list[Word]
"""The words between two pauses."""
