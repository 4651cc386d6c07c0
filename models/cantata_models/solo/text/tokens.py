"""The output of normalisation, spoken words and pauses, and the rules that produce it."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias


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
