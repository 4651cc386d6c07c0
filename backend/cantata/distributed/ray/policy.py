"""How many replicas a model needs."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import dataclass

UP_AFTER_S = 10.0
"""A need for more replicas lasts this long before they are started."""
DOWN_AFTER_S = 600.0
"""A need for fewer lasts this long: a replica takes long to load, and its places cost nothing
while nobody uses them."""
_ROUNDING = 1e-9
"""Seven requests fill ten places to exactly 0.7, whatever 0.7 is in binary."""


@dataclass(frozen=True, slots=True)
class ReplicaLoad:
    places: float
    """Requests that it serves at the same time; 0 while that is not known."""
    in_use: float
    waiting: float
    """For a place, here or at the edges; an edge's requests are shared among the replicas."""


def wanted(loads: Sequence[ReplicaLoad], fill: float, now: int) -> int:
    """The number of replicas whose places all requests would fill to `fill`.

    Args:
        loads: of the replicas that have reported theirs.
        fill: part of the places that is to be taken, above 0 and up to 1.
        now: current number of replicas; the answer if nothing is known about their places.
    """
    known = [load.places for load in loads if load.places > 0]
    if not known:
        return now
    mean_places = math.fsum(known) / len(known)
    requests = math.fsum(load.in_use + load.waiting for load in loads)
    return max(1, math.ceil(requests / (fill * mean_places) - _ROUNDING))
