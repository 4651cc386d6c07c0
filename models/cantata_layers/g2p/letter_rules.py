# ruff: noqa: RUF001 (marks of stress look like other signs)
"""Spelling to phones by ordered rules, and where the stress of a word is."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence

STRESS, SECONDARY = "ˈ", "ˌ"


class LetterRules:
    """Rewrites a word from left to right: at each place, the first rule that matches. `rules`: a
    regular expression, which may look around itself, and what its letters become."""

    def __init__(self, rules: Iterable[tuple[str, str]]) -> None:
        self._rules = [(re.compile(letters), phones) for letters, phones in rules]

    def apply(self, word: str) -> str:
        """The word rewritten; letters that no rule knows are left out."""
        made, place = list[str](), 0
        while place < len(word):
            for letters, phones in self._rules:
                match = letters.match(word, place)
                if match and match.end() > place:
                    made.append(match.expand(phones) if "\\" in phones else phones)
                    place = match.end()
                    break
            else:
                place += 1
        return "".join(made)


def list_words(written: str) -> list[str]:
    """The words of a text with spaces between."""
    return written.split()


def substitute(phones: str, changes: Sequence[tuple[re.Pattern[str], str]]) -> str:
    """Apply every change to the whole word, in order."""
    for pattern, becomes in changes:
        phones = pattern.sub(becomes, phones)
    return phones


def compile_changes(*changes: tuple[str, str]) -> tuple[tuple[re.Pattern[str], str], ...]:
    """For `substitute`: each a regular expression and its replacement."""
    return tuple((re.compile(pattern), becomes) for pattern, becomes in changes)


def mark_stress(
    phones: str, nuclei: Sequence[int], stressed: int, secondary: Iterable[int] = ()
) -> str:
    """The word with marks in front of its stressed vowels.

    Args:
        phones: without marks.
        nuclei: places of the vowels that make a syllable.
        stressed: which of the nuclei has the main stress.
        secondary: which have a weaker one.
    """
    marks = {nuclei[index]: SECONDARY for index in secondary}
    marks[nuclei[stressed]] = STRESS
    return "".join(marks.get(place, "") + phone for place, phone in enumerate(phones))
