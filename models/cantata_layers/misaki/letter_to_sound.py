"""The phones of words that no lexicon has, by their letters.

A joint-sequence model (Bisani and Ney, 2008): an n-gram language model of pairs, each of a letter
and the phones that it stands for, and a beam search for the likeliest pairs that spell a word.
`cantata_layers.training.letter_to_sound` trained it. Costs are whole numbers, so that a word has
the same phones on every machine.
"""

from __future__ import annotations

import unicodedata
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

ORDER = 6
"""Pairs of the longest n-grams."""
BITS = 9
"""Of a pair's number; 0 stands for none."""
START, END, FIRST_PAIR = 1, 2, 3
UNIT, WORST = 0.05, 255
"""Costs are negative natural logarithms in this unit, up to this many."""
_BEAM = 16
_MAX_LETTERS = 40
"""Letters; what is longer is no word."""
_HISTORY = (1 << BITS * (ORDER - 1)) - 1
_PRIMARY, _SECONDARY = "ˈ", "ˌ"  # noqa: RUF001
_WEAK, _FULL = "əᵊᵻ", "AIOQWYaeiouæɑɒɔɚɛɜɪʊʌ"  # noqa: RUF001
"""Vowels."""

Keys = NDArray[np.int64]


@dataclass(frozen=True)
class NgramTable:
    """The n-grams of one order."""

    keys: Keys
    """Sorted; numbers of pairs, the last one in the lowest bits."""
    costs: NDArray[np.uint8]
    """Of the last pair after the others."""
    backoff: NDArray[np.uint8]
    """Of leaving the first one out, where the n-gram stands before a pair."""

    def find(self, keys: Keys) -> tuple[NDArray[np.int64], NDArray[np.bool_]]:
        """Where n-grams are, and which of them are there."""
        places = np.minimum(np.searchsorted(self.keys, keys), len(self.keys) - 1)
        return places, self.keys[places] == keys


def find_weights(*, british: bool) -> Path:
    """The file of an accent."""
    return Path(__file__).with_name(f"letter_to_sound_{'gb' if british else 'us'}.npz")


def save_tables(path: Path, pairs: Sequence[tuple[str, str]], tables: Sequence[NgramTable]) -> None:
    """Write a model: pairs by number, from `FIRST_PAIR` on, and n-grams by order."""
    letters = "".join(letter for letter, _ in pairs)
    arrays: dict[str, Any] = {"letters": letters, "phones": " ".join(phones for _, phones in pairs)}
    for order, table in enumerate(tables, 1):
        # Differences of sorted keys are small, so they compress well.
        arrays[f"keys{order}"] = np.diff(table.keys, prepend=0)
        arrays[f"costs{order}"], arrays[f"backoff{order}"] = table.costs, table.backoff
    np.savez_compressed(path, **arrays)


@cache
def load_letter_reader(british: bool) -> LetterReader:
    return LetterReader(find_weights(british=british))


class LetterReader:
    """Reads words. Loading takes a tenth of a second, a word a few milliseconds. `path`: written by
    `save_tables`."""

    def __init__(self, path: Path) -> None:
        with np.load(path) as file:
            letters, phones = str(file["letters"]), str(file["phones"]).split(" ")
            self._tables = [
                NgramTable(np.cumsum(file[f"keys{n}"]), file[f"costs{n}"], file[f"backoff{n}"])
                for n in range(1, ORDER + 1)
            ]
        self._phones = dict(enumerate(phones, FIRST_PAIR))
        numbers = np.arange(FIRST_PAIR, FIRST_PAIR + len(letters))
        self._pairs = {one: numbers[[c == one for c in letters]] for one in set(letters)}

    def __call__(self, word: str) -> str:
        """The phones of a word, with one primary stress; empty: it has no vowel, or is too long."""
        letters = [c for c in unicodedata.normalize("NFKD", word.lower()) if c in self._pairs]
        if not letters or len(letters) > _MAX_LETTERS:
            return ""
        phones = "".join(self._phones[number] for number in self._search(letters))
        return _stress_once(phones) if any(phone in _FULL + _WEAK for phone in phones) else ""

    def _search(self, letters: Sequence[str]) -> list[int]:
        """The likeliest pairs, by beam search."""
        histories, costs = np.array([START]), np.array([0])
        steps: list[tuple[NDArray[np.int64], NDArray[np.int64]]] = []
        for letter in letters:
            pairs = self._pairs[letter]
            keys = (histories[:, None] << BITS | pairs).ravel()
            summed = (costs[:, None] + self._compute_costs(keys).reshape(-1, len(pairs))).ravel()
            best = np.argsort(summed, kind="stable")
            # Of those that go on alike, only the cheapest can win.
            _, first = np.unique(keys[best] & _HISTORY, return_index=True)
            kept = best[np.sort(first)[:_BEAM]]
            steps.append((kept // len(pairs), pairs[kept % len(pairs)]))
            histories, costs = keys[kept] & _HISTORY, summed[kept]
        place = int(np.argmin(costs + self._compute_costs(histories << BITS | END)))
        found = []
        for parents, pairs in reversed(steps):
            found.append(int(pairs[place]))
            place = int(parents[place])
        return found[::-1]

    def _compute_costs(self, keys: Keys) -> NDArray[np.int64]:
        """Of the last pair of each key after the others: that of the longest n-gram that is known,
        and what the longer ones cost to leave out."""
        costs = np.zeros(len(keys), np.int64)
        is_open = np.ones(len(keys), bool)
        for order in range(ORDER, 0, -1):
            table = self._tables[order - 1]
            places, is_there = table.find(keys & (1 << BITS * order) - 1)
            is_there &= is_open & (table.costs[places] < WORST)
            costs[is_there] += table.costs[places[is_there]]
            is_open &= ~is_there
            if order > 1:
                shorter = self._tables[order - 2]
                context = keys >> BITS & (1 << BITS * (order - 1)) - 1
                places, is_there = shorter.find(context)
                is_there &= is_open
                costs[is_there] += shorter.backoff[places[is_there]]
        costs[is_open] += WORST
        return costs


def _stress_once(phones: str) -> str:
    """With its first primary stress alone. Without one, the first secondary becomes primary, or the
    first full vowel gets one."""
    head, mark, tail = phones.partition(_PRIMARY)
    if mark:
        return head + mark + tail.replace(_PRIMARY, _SECONDARY)
    if _SECONDARY in phones:
        return phones.replace(_SECONDARY, _PRIMARY, 1)
    places = [place for place, phone in enumerate(phones) if phone in _FULL] or [
        place for place, phone in enumerate(phones) if phone in _WEAK
    ]
    return f"{phones[: places[0]]}{_PRIMARY}{phones[places[0] :]}" if places else ""
