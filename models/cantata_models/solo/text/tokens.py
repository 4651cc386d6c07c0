"""What normalisation turns text into: spoken words, pauses, and the rules that make them."""

from __future__ import annotations

import enum
import re
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import TypeAlias


class Strength(enum.IntEnum):
    """How far apart a pause sets what stands around it."""

    CLAUSE = 1
    SENTENCE = 2


@dataclass(frozen=True, slots=True)
class Spoken:
    """One word as it is said, and the characters [start, end) it came from.

    `word` is a lower-case word, or one upper-case letter that is said by its name, to which "'s"
    may be added. `phones`, when not empty, are the caller's own and are used as they stand.
    """

    word: str
    start: int
    end: int
    phones: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True)
class Pause:
    """A pause; `question` tells that the sentence it ends is a question."""

    strength: Strength
    question: bool = False


Item: TypeAlias = Spoken | Pause
Expansion: TypeAlias = list[Item] | None
"""What a rule makes of its match. None declines the match; an empty list skips the text."""


@dataclass(frozen=True, slots=True)
class Rule:
    """A pattern, tried at the start of each token, and what to make of its match."""

    pattern: re.Pattern[str]
    expand: Callable[[re.Match[str]], Expansion]


def rule(pattern: str, expand: Callable[[re.Match[str]], Expansion]) -> Rule:
    """Compiles a rule. Folded text has ASCII digits and letters only, so `\\d` and `\\w` suit."""
    return Rule(re.compile(pattern, re.ASCII), expand)


def say(match: re.Match[str], words: str | Iterable[str]) -> list[Item]:
    """Returns the words, all of which came from the whole match."""
    return say_span(match.start(), match.end(), words)


def say_span(start: int, end: int, words: str | Iterable[str]) -> list[Item]:
    """Returns the words, all of which came from the characters [start, end)."""
    parts = words.split() if isinstance(words, str) else words
    return [Spoken(word, start, end) for word in parts]


_AFTER_SENTENCE = re.compile(r"[\"')\]]*(?:\s*$|\s+[\"'(\[]*[A-Z])", re.ASCII)


def sentence_end_follows(text: str, position: int) -> bool:
    """Tells whether the text after an abbreviation's full stop ends or opens a sentence."""
    return _AFTER_SENTENCE.match(text, position) is not None
