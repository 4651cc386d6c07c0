"""What the rules make of a text: spoken words and pauses; and what rules are made of."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Self, TypeAlias


def word_list(text: str) -> tuple[str, ...]:
    return tuple(text.split())


def word_set(text: str) -> frozenset[str]:
    return frozenset(text.split())


def table(text: str) -> dict[str, str]:
    """Reads "key: value" lines and skips empty ones."""
    lines = (line.strip() for line in text.strip().split("\n"))
    return dict(line.split(": ", 1) for line in lines if line)


class Accent(enum.Enum):
    """Whose English a text is read in: their numbers, dates and prices."""

    AMERICAN = "american"
    BRITISH = "british"


class AccentWord(str):
    """A word that only one accent says: the British "and" of "one hundred and five"."""

    __slots__ = ("accent",)
    accent: Accent

    def __new__(cls, word: str, accent: Accent) -> Self:
        made = super().__new__(cls, word)
        made.accent = accent
        return made


def say_in(accent: Accent, words: str) -> list[str]:
    """Returns words that only an accent says."""
    return [AccentWord(word, accent) for word in words.split()]


class Strength(enum.IntEnum):
    """How strongly a pause separates its neighbours."""

    CLAUSE = 1
    SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Spoken:
    """One spoken word and the characters [start, end) it came from.

    `word` is a lower-case word, or one upper-case letter that is read by name, perhaps with "'s".
    `phones` is what the caller wrote in place of a word, between `[[` and `]]`; None: nothing.
    """

    word: str
    start: int
    end: int
    phones: str | None = None
    accent: Accent | None = None
    """Whose word it is. None: everyone's."""


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
    accent: Accent | None = None
    """Whose texts it is for. None: everyone's."""


def rule(
    pattern: str, expand: Callable[[re.Match[str]], Expansion], accent: Accent | None = None
) -> Rule:
    """Compiles a rule. `\\d` and `\\w` are safe: folded text has only ASCII digits and letters."""
    return Rule(re.compile(pattern, re.ASCII), expand, accent)


def say(match: re.Match[str], words: str | Iterable[str]) -> list[Item]:
    """Returns the words, each with the span of the whole match."""
    return say_span(match.start(), match.end(), words)


def say_span(start: int, end: int, words: str | Iterable[str]) -> list[Item]:
    """Returns the words, each with the span [start, end)."""
    parts = words.split() if isinstance(words, str) else words
    return [
        Spoken(str(word), start, end, accent=word.accent if isinstance(word, AccentWord) else None)
        for word in parts
    ]


_AFTER_SENTENCE = re.compile(r"[\"')\]]*(?:\s*$|\s+[\"'(\[]*[A-Z])", re.ASCII)


def sentence_end_follows(text: str, position: int) -> bool:
    """Whether a sentence ends or starts after an abbreviation's full stop."""
    return _AFTER_SENTENCE.match(text, position) is not None
