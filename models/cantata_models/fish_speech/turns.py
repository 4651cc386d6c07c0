"""Cuts a text with several speakers into turns, and joins these to groups, each spoken in one go.

As published, a group ends before it would have too many turns or bytes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

from cantata_layers.request_building import can_be_spoken
from cantata_models.fish_speech.tokenizers import SPEAKER_TAG

MAX_TURNS = 5
DEFAULT_BYTES = 200


def grouped(text: str, max_bytes: int) -> tuple[str, ...]:
    """Cut a text into groups of turns.

    Args:
        text: that can be spoken.
        max_bytes: of a group, in UTF-8. A longer turn is a group of its own.

    Returns:
        The groups in order, none of them silent; a text without tags is one.
    """
    return tuple(_join_turns(_iterate_audible(_cut(text)), max_bytes))


def _cut(text: str) -> Iterator[str]:
    """Yield what stands in front of the first tag, if anything does, and each speaker's turn."""
    starts = [found.start() for found in SPEAKER_TAG.finditer(text)]
    edges = [0, *(start for start in starts if start), len(text)]
    for start, end in pairwise(edges):
        yield text[start:end]


def _iterate_audible(turns: Iterable[str]) -> Iterator[str]:
    """Yield the turns; a silent one stays with the turn before it, or else with the next."""
    waiting = ""
    for turn in turns:
        if waiting and _is_audible(waiting) and _is_audible(turn):
            yield waiting
            waiting = ""
        waiting += turn
    yield waiting


def _is_audible(turn: str) -> bool:
    return can_be_spoken(SPEAKER_TAG.sub("", turn))


def _join_turns(turns: Iterable[str], max_bytes: int) -> Iterator[str]:
    group: list[str] = []
    size = 0
    for turn in turns:
        length = len(turn.encode())
        if group and (len(group) == MAX_TURNS or size + length > max_bytes):
            yield "".join(group).strip()
            group, size = [], 0
        group.append(turn)
        size += length
    yield "".join(group).strip()
