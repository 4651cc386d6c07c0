"""Distinguishes a stream of deltas from sound of which a part came twice, or never."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

import numpy as np
from numpy.typing import NDArray

PROBE_SAMPLES = 480
"""20 ms at 24 kHz: no two places of speech are the same bits for so long."""


class Kind(StrEnum):
    REPLAYED = "replayed"
    SKIPPED = "skipped"
    CHANGED = "changed"
    """Samples that the sound does not have at all."""


@dataclass(frozen=True)
class Fault:
    """The first place where the played sound differs from the stream."""

    kind: Kind
    at: int
    """Samples that were right before it."""
    samples: int
    """How far the playback jumped back or ahead; 0 for CHANGED."""


def first_fault(played: NDArray[np.int16], sound: NDArray[np.int16]) -> Fault | None:
    """Compares what was played with the whole sound, both [N]; None where they are the same."""
    assert played.ndim == sound.ndim == 1
    common = min(len(played), len(sound))
    differing = np.flatnonzero(played[:common] != sound[:common])
    at = int(differing[0]) if len(differing) else common
    if at == len(played):
        return None if at == len(sound) else Fault(Kind.SKIPPED, at, len(sound) - at)
    went_on = _find(sound, played[at : at + PROBE_SAMPLES])
    if went_on is None:
        return Fault(Kind.CHANGED, at, 0)
    kind = Kind.REPLAYED if went_on < at else Kind.SKIPPED
    return Fault(kind, at, abs(went_on - at))


def _find(sound: NDArray[np.int16], part: NDArray[np.int16]) -> int | None:
    """Where `part` begins in `sound`."""
    if len(part) > len(sound):
        return None
    windows = np.lib.stride_tricks.sliding_window_view(sound, len(part))
    found = np.flatnonzero((windows == part).all(axis=1))
    return int(found[0]) if len(found) else None
