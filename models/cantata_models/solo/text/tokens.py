"""What the text front end passes on: phones, spoken words and pauses, sentences; and its errors."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias


class TextError(ValueError):
    """The text cannot be spoken. The message gives the reason and what is accepted."""


class WordlessText(TextError):
    """The text has no letters that the voice cannot read, but nothing with a sound either."""


VOWELS: tuple[str, ...] = (
    *("AA", "AE", "AH", "AO", "AW", "AY", "EH", "ER", "EY", "IH", "IY", "OW", "OY", "UH", "UW"),
)

CONSONANTS: tuple[str, ...] = (
    *("B", "CH", "D", "DH", "F", "G", "HH", "JH", "K", "L", "M", "N", "NG", "P", "R", "S", "SH"),
    *("T", "TH", "V", "W", "Y", "Z", "ZH"),
)

PHONES: tuple[str, ...] = tuple(sorted(VOWELS + CONSONANTS))
"""The 39 phones in alphabetical order. Trained weights depend on this order."""

SIL = "SIL"
"""Silence: the start and end of a sentence, and every punctuation mark that pauses."""

PHONE_INVENTORY: tuple[str, ...] = (*PHONES, SIL)
"""The 39 phones of pocketsphinx's dictionary, then silence. Trained weights depend on the order."""

PHONE_IDS: dict[str, int] = {phone: index for index, phone in enumerate(PHONE_INVENTORY)}
SIL_ID = PHONE_IDS[SIL]


def phone_ids(phones: Iterable[str]) -> list[int]:
    """Returns the phones' ids.

    Raises:
        ValueError: a phone is not in the inventory.
    """
    try:
        return [PHONE_IDS[phone] for phone in phones]
    except KeyError as error:
        raise ValueError(
            f"unknown phone {error.args[0]!r}; the phones are {' '.join(PHONE_INVENTORY)}"
        ) from None


def word_list(text: str) -> tuple[str, ...]:
    """Splits a literal at white space."""
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    """Splits a literal at white space into a set."""
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """Reads "key: value" lines and skips empty ones."""
    lines = (line.strip() for line in text.strip().split("\n"))
    return dict(line.split(": ", 1) for line in lines if line)


class Strength(enum.IntEnum):
    """How strongly a pause separates its neighbours."""

    CLAUSE = 1
    SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Spoken:
    """One spoken word and the characters [start, end) it came from.

    `word` is a lower-case word, or one upper-case letter that is read by name, perhaps with "'s".
    If `phones` is not empty, these are the caller's own phones and are used unchanged.
    """

    word: str
    start: int
    end: int
    phones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause. `question` means that the sentence it ends is a question."""

    strength: Strength
    question: bool = False


Item: TypeAlias = Spoken | Pause
Expansion: TypeAlias = list[Item] | None
"""A rule's result for its match. None declines the match; an empty list skips the text."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, tried at the start of each token, and the function that expands its match."""

    pattern: re.Pattern[str]
    expand: Callable[[re.Match[str]], Expansion]


def rule(pattern: str, expand: Callable[[re.Match[str]], Expansion]) -> Rule:
    """Compiles a rule. `\\d` and `\\w` are safe: folded text has only ASCII digits and letters."""
    return Rule(re.compile(pattern, re.ASCII), expand)


def say(match: re.Match[str], words: str | Iterable[str]) -> list[Item]:
    """Returns the words, each with the span of the whole match."""
    return say_span(match.start(), match.end(), words)


def say_span(start: int, end: int, words: str | Iterable[str]) -> list[Item]:
    """Returns the words, each with the span [start, end)."""
    parts = words.split() if isinstance(words, str) else words
    return [Spoken(word, start, end) for word in parts]


_AFTER_SENTENCE = re.compile(r"[\"')\]]*(?:\s*$|\s+[\"'(\[]*[A-Z])", re.ASCII)


def sentence_end_follows(text: str, position: int) -> bool:
    """Whether a sentence ends or starts after an abbreviation's full stop."""
    return _AFTER_SENTENCE.match(text, position) is not None


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
