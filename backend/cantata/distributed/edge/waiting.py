"""The queue of an edge: requests that no replica has a place for yet."""

from __future__ import annotations

import asyncio
from collections import Counter, deque
from dataclasses import dataclass
from functools import partial
from itertools import takewhile

from cantata.contract.data.errors import Overloaded, StageDied
from cantata.distributed.edge.peer import Peer
from cantata.distributed.edge.replicas import Fits, Replicas
from cantata.scheduling.admission import QUEUE_FULL, WAITED_TOO_LONG, spread

MAX_WAIT_S = 8.0
"""Longest wait for a place, as in a single server."""


@dataclass(frozen=True, slots=True, eq=False)
class _Turn:
    fits: Fits
    """Which replicas may take it."""


class Waiting:
    """Requests for one model, first come, first served; but a place that nobody before a request
    may take, because its replica has failed them, goes to that request."""

    def __init__(self, replicas: Replicas, model: str) -> None:
        self._replicas, self._model = replicas, model
        self._line: deque[_Turn] = deque()
        self.refused: Counter[str] = Counter({QUEUE_FULL: 0, WAITED_TOO_LONG: 0})
        """Requests that got no place, by reason."""

    def __len__(self) -> int:
        return len(self._line)

    def is_served(self, fits: Fits) -> bool:
        """Whether a replica may take such a request, once it has a place."""
        return bool(self._replicas.serving(self._model, fits))

    def check(self) -> None:
        """Reject a request that the queue has no room for; takes microseconds. Raises Overloaded:
        as many wait as the replicas have slots, and none is free."""
        serving = self._replicas.serving(self._model)
        states = [state for peer in serving if (state := peer.state(self._model)) is not None]
        full = len(self._line) >= sum(one.admission.slots for one in states)
        if states and full and self._replicas.best(self._model) is None:
            count = len(self._line)
            waiting = "1 request is" if count == 1 else f"{count} requests are"
            raise self._build_rejection(QUEUE_FULL, f"{waiting} waiting for a place")

    def check_place(self) -> None:
        """Reject a request that would not wait; takes microseconds. Raises Overloaded: no replica
        has a place for it."""
        if self.is_served(lambda peer: True) and self._replicas.best(self._model) is None:
            raise self._build_rejection(QUEUE_FULL, "no replica has a free place")

    async def place(
        self, fits: Fits, home: bytes | None, wait_s: float, *, queued: bool, again: bool
    ) -> Peer:
        """A replica with a place. Send the request at once: the next caller may get the same place.

        Args:
            home: of `replicas.hash_recording`, if it has one.
            queued: it waits here; otherwise the replica decides whether to take it.
            again: it had its turn, and the replica had no place after all.

        Raises:
            Overloaded: the queue is full, or no place became free in time.
            StageDied: no replica serves the model.
        """
        if not self.is_served(fits):
            raise StageDied(f"no replica serves model {self._model!r} now")
        if not queued:
            return self._find_least_busy(fits, home)
        turn = _Turn(fits)
        if again:
            self._line.appendleft(turn)
        else:
            self.check()
            self._line.append(turn)
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    free = self._replicas.best(self._model, partial(self._is_for, turn), home)
                    if free is not None:
                        return free
                    await self._replicas.changed()
        except TimeoutError:
            state = f"no place became free within {MAX_WAIT_S:g} s"
            raise self._build_rejection(WAITED_TOO_LONG, state) from None
        finally:
            self._line.remove(turn)
            if self._line:
                self._replicas.look_again()

    async def next_place(
        self, fits: Fits, home: bytes | None, wait_s: float, *, queued: bool
    ) -> Peer | None:
        """The same for a request that listeners already hear: ahead of the queue, and None instead
        of an error."""
        try:
            async with asyncio.timeout(wait_s):
                while True:
                    if not queued and self.is_served(fits):
                        return self._find_least_busy(fits, home)
                    if (free := self._replicas.best(self._model, fits, home)) is not None:
                        return free
                    await self._replicas.changed()
        except TimeoutError:
            return None

    def _is_for(self, turn: _Turn, peer: Peer) -> bool:
        """Whether a replica may take a request, and none of those before it."""
        before = takewhile(lambda one: one is not turn, self._line)
        return turn.fits(peer) and not any(one.fits(peer) for one in before)

    def _find_least_busy(self, fits: Fits, home: bytes | None) -> Peer:
        """The least busy replica that may take a request, whether it has a free place or not."""
        if (free := self._replicas.best(self._model, fits, home)) is not None:
            return free
        able = self._replicas.serving(self._model, fits)
        return max(able, key=lambda peer: peer.free(self._model))

    def _build_rejection(self, reason: str, message: str) -> Overloaded:
        """A rejection with the shortest time after which a replica expects to have a place."""
        self.refused[reason] += 1
        delays_s = [
            state.admission.retry_after_s
            for peer in self._replicas.serving(self._model)
            if (state := peer.state(self._model)) is not None
        ]
        retry_s = spread(min(delays_s, default=1.0), self.refused.total())
        return Overloaded(message, retry_s)
