"""When words are heard, from the durations of their phones and where the sound begins."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import zip_longest

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import WordTiming

SILENCE = 0.01
"""Of a sound's largest sample: it is silent below."""
EARLY_S = 0.075
"""So much before its frames a phone is heard; the reference package of Kokoro moves its times as
much (`kokoro` 0.9.4, pipeline.py)."""
PAUSE_S = 0.1
"""Between two words, less than this is no pause: the space between them has a duration, too."""
LEAD_S = 0.05
"""Kept of the silence before a text's first word, 0.2 to 0.4 s at the usual pace."""


def time_words(
    words: NDArray[np.int64], durations: NDArray[np.int64] | NDArray[np.float32], frame_s: float
) -> tuple[WordTiming, ...]:
    """When each word is heard.

    Args:
        words: [W, 2] phones [start, end) of each.
        durations: [T] frames of each phone.
        frame_s: seconds of a frame.
    """
    ends = np.concatenate([[0.0], np.cumsum(durations, dtype=np.float64)]) * frame_s
    return tuple(
        WordTiming(index, float(ends[start]), float(ends[end]))
        for index, (start, end) in enumerate(words)
    )


def find_onset(sound: NDArray[np.float32]) -> int:
    """The first of [N] samples that is not silent, relative to the loudest."""
    loud = np.abs(sound) > SILENCE * np.abs(sound).max()
    return int(loud.argmax())


def place_words(
    words: Sequence[WordTiming],
    onset_s: float,
    lead_s: float,
    audible: NDArray[np.bool_] | None = None,
    frame_s: float = 0.0,
) -> tuple[WordTiming, ...]:
    """When words are heard, from the times of their phones.

    A word ends where the next begins, unless there is a pause, and with the last of its frames that
    is audible.

    Args:
        onset_s: seconds from there to where the sound begins; so does the first word. At half the
            pace, that is half a second before its phones.
        lead_s: seconds that are left out at the beginning.
        audible: [F], where the sentence is not silent; None: unknown.
        frame_s: seconds of each of these.
    """
    placed = list[WordTiming]()
    for word, after in zip_longest(words, words[1:]):
        begin = word.start_s - EARLY_S
        begin = begin if placed else min(begin, onset_s)
        end = word.end_s if after is None else _join(word.end_s, after.start_s)
        end = _find_end(begin, end - EARLY_S, audible, frame_s)
        placed.append(WordTiming(word.index, max(begin - lead_s, 0.0), max(end - lead_s, 0.0)))
    return tuple(placed)


def _join(end_s: float, next_s: float) -> float:
    return next_s if next_s - end_s < PAUSE_S - 1e-9 else end_s


def _find_end(
    begin_s: float, end_s: float, audible: NDArray[np.bool_] | None, frame_s: float
) -> float:
    if audible is None:
        return end_s
    first, last = round(begin_s / frame_s), math.ceil(end_s / frame_s)
    heard = np.flatnonzero(audible[max(first, 0) : last])
    return end_s if len(heard) == 0 else min(end_s, (first + int(heard[-1]) + 1) * frame_s)
