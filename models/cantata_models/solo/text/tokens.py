"""What the text front end passes on: phones, words and sentences; and its errors."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from cantata_layers.english.lexicon import PHONES


class TextError(ValueError):
    """The text cannot be spoken. The message gives the reason and what is accepted."""


class WordlessText(TextError):
    """The text has no letters that the voice cannot read, but nothing with a sound either."""


SIL = "SIL"
"""Silence: the start and end of a sentence, and every punctuation mark that pauses."""

PHONE_INVENTORY: tuple[str, ...] = (*PHONES, SIL)
"""The 39 phones of pocketsphinx's dictionary, then silence. Trained weights depend on the order."""

PHONE_IDS: dict[str, int] = {phone: index for index, phone in enumerate(PHONE_INVENTORY)}
SIL_ID = PHONE_IDS[SIL]


def phone_ids(phones: Iterable[str]) -> list[int]:
    """Returns the phones' ids. Raises ValueError: a phone is not in the inventory."""
    try:
        return [PHONE_IDS[phone] for phone in phones]
    except KeyError as error:
        raise ValueError(
            f"unknown phone {error.args[0]!r}; the phones are {' '.join(PHONE_INVENTORY)}"
        ) from None


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
