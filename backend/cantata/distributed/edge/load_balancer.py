"""Which of several replicas gets a request."""

from __future__ import annotations

import hashlib
from collections.abc import Mapping
from typing import TypeVar

import numpy as np

from cantata.contract.data.request import ReferenceAudio

R = TypeVar("R")

_FRAMES = 4096
"""At least so many frames of a recording are hashed, if it has them: enough to identify it."""


def least_loaded(free: Mapping[R, int], turn: int) -> R | None:
    """The one with the most free places; None: none has any.

    Args:
        free: places of each, less those that requests on their way will take.
        turn: a count of choices: of several that have equally many, each is chosen in turn.
    """
    most = max(free.values(), default=0)
    if most <= 0:
        return None
    equals = [replica for replica, places in free.items() if places == most]
    return equals[turn % len(equals)]


def affinity_match(free: Mapping[R, int], home: bytes) -> R | None:
    """The one that has probably encoded a recording already; None: none has a free place.

    All edges choose the same one without talking to each other, and when a replica comes or goes,
    only the recordings that it gains or loses move (rendezvous hashing: Thaler and Ravishankar,
    "Using Name-Based Mappings to Increase Hit Rates", 1998). One that has less than half as many
    free places as another is passed over: a popular voice must not fill one replica
    while others idle.

    Args:
        free: as `least_loaded`'s; their text distinguishes replicas.
        home: of `affinity_target`.
    """
    most = max(free.values(), default=0)
    able = [replica for replica, places in free.items() if 0 < places >= most / 2]
    return max(able, key=lambda replica: _weight(str(replica), home), default=None)


def affinity_target(recording: ReferenceAudio) -> bytes:
    """What identifies a recording; takes tens of microseconds."""
    samples = recording.samples
    part = np.ascontiguousarray(samples[:: max(1, len(samples) // _FRAMES)])
    shape = f"{samples.shape} {recording.sample_rate}"
    return hashlib.blake2b(part.data, key=shape.encode(), digest_size=16).digest()


def _weight(replica: str, home: bytes) -> bytes:
    return hashlib.blake2b(replica.encode(), key=home, digest_size=16).digest()
