"""Words with their phones, put together to what a network reads at once.

Letters: T phones.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

from cantata.contract.data.request import TextSpan

PADDING = 0
"""The id at both ends of a sentence."""
_MARKS = frozenset(';:,.!?—…"“”()')
"""Phones without a sound of their own."""
_CLAUSE_END = frozenset(",;:—.!?")


@dataclass(frozen=True, slots=True)
class PhonemizedWord:
    span: TextSpan
    """In the client's text."""
    start: int
    """Its first phone."""
    end: int
    """The phone after its last."""


@dataclass(frozen=True, slots=True)
class PhonemizedSentence:
    """What the network reads at once."""

    phones: tuple[int, ...]
    """[T] ids, with the padding at both ends."""
    words: tuple[PhonemizedWord, ...]


@dataclass(frozen=True, slots=True)
class PhoneUnit:
    """A word, perhaps with the space after it, or marks and spaces."""

    phones: tuple[int, ...]
    """Ids."""
    span: TextSpan
    """In the client's text."""
    is_word: bool
    ends_clause: bool


def has_sound(phones: str) -> bool:
    """Whether there is more than marks and spaces."""
    return any(letter not in _MARKS and not letter.isspace() for letter in phones)


def ends_clause(phones: str) -> bool:
    """Whether a sentence may be cut behind them."""
    stripped = phones.rstrip()
    return bool(stripped) and stripped[-1] in _CLAUSE_END


def make_sentences(
    units: Iterable[PhoneUnit], space: int, max_phones: int
) -> Iterator[PhonemizedSentence]:
    """The sentences of units, each with at least a word. `max_phones`: phones that the network
    should read at once, without the padding."""
    for part in _cut(units, max_phones):
        if any(unit.is_word and _count_heard(unit, space) for unit in part):
            yield _join(part, space)


def _cut(units: Iterable[PhoneUnit], max_phones: int) -> Iterator[list[PhoneUnit]]:
    """Parts that the network can read: at the last end of a clause, or else between two words."""
    part: list[PhoneUnit] = []
    length = 0
    for unit in units:
        for phones in _pieces_of(unit.phones, max_phones):
            if length + len(phones) > max_phones:
                ends = [n for n, earlier in enumerate(part, 1) if earlier.ends_clause]
                cut = ends[-1] if ends and ends[-1] < len(part) else len(part)
                yield part[:cut]
                part = part[cut:]
                length = sum(len(earlier.phones) for earlier in part)
                if length + len(phones) > max_phones:
                    yield part
                    part, length = [], 0
            part.append(PhoneUnit(phones, unit.span, unit.is_word, unit.ends_clause))
            length += len(phones)
    if part:
        yield part


def _pieces_of(phones: tuple[int, ...], max_phones: int) -> Iterator[tuple[int, ...]]:
    """Of a word; more than one only if the word alone is longer than the network reads."""
    for begin in range(0, max(len(phones), 1), max_phones):
        yield phones[begin : begin + max_phones]


def _count_heard(unit: PhoneUnit, space: int) -> int:
    """Phones without the spaces at the end."""
    count = len(unit.phones)
    while count and unit.phones[count - 1] == space:
        count -= 1
    return count


def _join(units: Sequence[PhoneUnit], space: int) -> PhonemizedSentence:
    phones, words = [PADDING], list[PhonemizedWord]()
    for unit in units:
        if unit.is_word:
            end = len(phones) + _count_heard(unit, space)
            words.append(PhonemizedWord(unit.span, len(phones), end))
        phones += unit.phones
    while phones[-1] == space:
        phones.pop()
    return PhonemizedSentence((*phones, PADDING), tuple(words))
