"""Tracks which replicas are up, by their own periodic reports, and how many a model needs.

A new directory knows no replica, although all may be up. So no replica leaves a reader's set
until the directory is old enough to have heard from all.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeVar

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


ANNOUNCE_EVERY_S = 1.0
FORGET_AFTER_S = 15.0
"""A replica that has been silent for this long is left out. Edges see a dead one much sooner, by
its link; this only ends their attempts to reach it. A machine may be busy for seconds."""


@dataclass(frozen=True, slots=True)
class Membership:
    """What a directory knows."""

    addresses: frozenset[str]
    """`HOST:PORT` of the replicas that take requests."""
    complete: bool
    """Whether others are gone; otherwise, they may not have reported yet."""

    def merge_with(self, before: frozenset[str]) -> frozenset[str]:
        """The set that a reader with that set before has now."""
        return self.addresses if self.complete else self.addresses | before


@dataclass(frozen=True, slots=True)
class QueueDepth:
    """What a replica learns about the edges."""

    waiting: float
    """Its share of the requests for its model that wait there."""
    edges: int


@dataclass(frozen=True, slots=True)
class _Replica:
    at_s: float
    address: str
    model: str
    serving: bool


@dataclass(frozen=True, slots=True)
class _Edge:
    at_s: float
    waiting: Mapping[str, int]


_Report = TypeVar("_Report", _Replica, _Edge)


class MembershipTable:
    """The directory's state. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._began_s = clock()
        self._replicas: dict[str, _Replica] = {}
        self._edges: dict[str, _Edge] = {}

    def announce(self, id: str, address: str, model: str, *, serving: bool) -> QueueDepth:
        """A replica reports that it is up.

        Args:
            id: its own.
            address: where its links begin.
            serving: whether it takes requests; not while it loads or drains.
        """
        now_s = self._clock()
        self._replicas[id] = _Replica(now_s, address, model, serving)
        edges = _list_fresh(self._edges, now_s)
        if not serving:
            return QueueDepth(0.0, len(edges))
        sharing = [
            one for one in _list_fresh(self._replicas, now_s) if one.serving and one.model == model
        ]
        waiting = sum(edge.waiting.get(model, 0) for edge in edges)
        return QueueDepth(waiting / len(sharing), len(edges))

    def read(self, edge: str, waiting: Mapping[str, int]) -> Membership:
        """The replicas, for an edge. `waiting`: requests that wait there because no replica has a
        place, by model."""
        now_s = self._clock()
        self._edges[edge] = _Edge(now_s, waiting)
        serving = (one.address for one in _list_fresh(self._replicas, now_s) if one.serving)
        return Membership(frozenset(serving), complete=now_s - self._began_s > FORGET_AFTER_S)


def _list_fresh(report: dict[str, _Report], now_s: float) -> list[_Report]:
    """The members that reported lately; forgets the others."""
    for id in [id for id, one in report.items() if now_s - one.at_s > FORGET_AFTER_S]:
        del report[id]
    return list(report.values())


def as_plain(present: Membership) -> dict[str, Any]:
    return {"addresses": sorted(present.addresses), "complete": present.complete}


def from_plain(message: Mapping[str, Any]) -> Membership:
    return Membership(frozenset(message["addresses"]), bool(message["complete"]))
