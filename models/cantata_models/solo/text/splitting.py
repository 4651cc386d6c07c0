"""Splits a sentence that is too long to synthesise in one piece.

The parts have similar sizes. A cut is made at a nearby clause end, else before a conjunction, else
between words. It falls inside a number or after "the" only as a last resort.
"""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from cantata_models.solo.text.result import Clause, Word
from cantata_models.solo.text.wordlists import word_set

_CONJUNCTIONS = word_set(
    "and but or nor so yet because although though while whereas when where which who that if "
    "unless until since before after as than"
)
_TIED = word_set(
    "the a an of to in on at by for with from and or but my your his her its our their this that "
    "these those no not is are was were be been will would can could should mr. mrs. ms. dr."
)
"""A pause after one of these sounds wrong."""

# The cost of a cut. Missing the target size by the whole limit costs 1.
_CLAUSE_COST, _CONJUNCTION_COST, _WORD_COST, _TIED_COST = 0.0, 0.35, 0.9, 1.3


@dataclass(frozen=True, slots=True)
class _Unit:
    """A word, and whether a pause follows it in the sentence."""

    word: Word
    pauses: bool

    @property
    def size(self) -> int:
        return len(self.word.phones) + self.pauses


def split(clauses: Sequence[Clause], limit: int) -> Iterator[list[Clause]]:
    """Yields parts of at most `limit` phones, including a silence between clauses."""
    units = [unit for clause in clauses for unit in _units(clause, limit)]
    remaining = sum(unit.size for unit in units)
    start = 0
    # The pause after a part's last word does not count: the end is silent anyway.
    while remaining - units[-1].pauses > limit:
        end = _best_end(units, start, limit, remaining)
        yield _clauses(units[start:end])
        remaining -= sum(unit.size for unit in units[start:end])
        start = end
    yield _clauses(units[start:])


def _units(clause: Clause, limit: int) -> list[_Unit]:
    words = [piece for word in clause for piece in _split_word(word, limit)]
    return [_Unit(word, place == len(words) - 1) for place, word in enumerate(words)]


def _split_word(word: Word, limit: int) -> list[Word]:
    if len(word.phones) <= limit:
        return [word]
    starts = range(0, len(word.phones), limit)
    return [replace(word, phones=word.phones[start : start + limit]) for start in starts]


def _best_end(units: Sequence[_Unit], start: int, limit: int, remaining: int) -> int:
    """Returns the end of the part that starts at `start`, at least one word later."""
    target = remaining / math.ceil(remaining / limit)
    best, best_cost = start + 1, math.inf
    size = 0
    for place in range(start, len(units) - 1):
        size += units[place].size
        if size - units[place].pauses > limit:
            break
        cost = _cut_cost(units[place], units[place + 1]) + abs(size - target) / limit
        if cost < best_cost:
            best, best_cost = place + 1, cost
    return best


def _cut_cost(unit: _Unit, following: _Unit) -> float:
    if unit.pauses:
        return _CLAUSE_COST
    before, after = unit.word, following.word
    if (before.start, before.end) == (after.start, after.end) or before.text.lower() in _TIED:
        return _TIED_COST
    return _CONJUNCTION_COST if after.text.lower() in _CONJUNCTIONS else _WORD_COST


def _clauses(units: Sequence[_Unit]) -> list[Clause]:
    clauses: list[Clause] = [[]]
    for place, unit in enumerate(units):
        clauses[-1].append(unit.word)
        if unit.pauses and place < len(units) - 1:
            clauses.append([])
    return clauses
