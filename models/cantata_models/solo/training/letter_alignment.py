"""Aligns letters with phones to make training targets for the letter-to-sound network.

Every letter of a word emits a chunk of zero, one or two phones; the chunks in order are the word's
phones. The table P(chunk | letter) starts from how often a letter and a phone have the same
relative position. It is then re-estimated from its own best alignments (Viterbi training).
"""

from __future__ import annotations

import math
from collections import Counter, defaultdict
from collections.abc import Sequence

Chunk = tuple[str, ...]
Pair = tuple[str, tuple[str, ...]]
"""A word's letters and its phones."""

MAX_CHUNK = 2
_FLOOR = -12.0
"""Log-probability of a chunk never seen with its letter; used only as a last resort."""
_EMPTY_PRIOR, _DOUBLE_PRIOR = math.log(0.2), math.log(0.02)

Table = dict[str, dict[Chunk, float]]


def _initial_table(pairs: Sequence[Pair]) -> Table:
    counts: dict[str, Counter[str]] = defaultdict(Counter)
    for letters, phones in pairs:
        scale = len(phones) / len(letters)
        for index, letter in enumerate(letters):
            place = min(int((index + 0.5) * scale), len(phones) - 1)
            counts[letter][phones[place]] += 1
    table: Table = {}
    for letter, seen in counts.items():
        total = sum(seen.values())
        single: dict[Chunk, float] = {
            (phone,): math.log(count / total) for phone, count in seen.items()
        }
        doubles: dict[Chunk, float] = {
            a + b: _DOUBLE_PRIOR + single[a] + single[b] for a in single for b in single if a != b
        }
        table[letter] = {(): _EMPTY_PRIOR, **single, **doubles}
    return table


def align(letters: str, phones: tuple[str, ...], table: Table) -> tuple[Chunk, ...] | None:
    """Returns the most likely chunk of each letter, or None if there is no alignment."""
    states: dict[int, tuple[float, tuple[Chunk, ...]]] = {0: (0.0, ())}
    for index, letter in enumerate(letters):
        scores = table.get(letter, {})
        # The remaining letters can emit at most MAX_CHUNK phones each.
        min_end = len(phones) - MAX_CHUNK * (len(letters) - index - 1)
        following: dict[int, tuple[float, tuple[Chunk, ...]]] = {}
        for place, (score, path) in states.items():
            for end in range(max(place, min_end), min(place + MAX_CHUNK, len(phones)) + 1):
                chunk = phones[place:end]
                total = score + scores.get(chunk, _FLOOR * (1 + len(chunk)))
                if end not in following or total > following[end][0]:
                    following[end] = (total, (*path, chunk))
        states = following
    best = states.get(len(phones))
    return None if best is None else best[1]


def _reestimate(pairs: Sequence[Pair], table: Table) -> Table:
    counts: dict[str, Counter[Chunk]] = defaultdict(Counter)
    for letters, phones in pairs:
        chunks = align(letters, phones, table)
        for letter, chunk in zip(letters, chunks or (), strict=False):
            counts[letter][chunk] += 1
    return {
        letter: {chunk: math.log(count / sum(seen.values())) for chunk, count in seen.items()}
        for letter, seen in counts.items()
    }


def train_table(pairs: Sequence[Pair], *, iterations: int = 5) -> Table:
    """Returns log P(chunk | letter) after `iterations` rounds of Viterbi training."""
    table = _initial_table(pairs)
    for _ in range(iterations):
        table = _reestimate(pairs, table)
    return table
