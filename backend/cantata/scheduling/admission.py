"""Admission control: as many requests as play without gaps, a short queue, then rejection.

The number of places follows from the steps so far. A burst of requests costs more than that:
its prompts, its messages, other load on the machine. So places are not handed out all at
once. Only a few requests start at a time; the next one is admitted when one of them has its first
sound, and while every running listener has enough left to play.
"""

from __future__ import annotations

import asyncio
import math
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cantata.contract.data.errors import Overloaded
from cantata.contract.service import AdmissionReport

LIVE, BATCH = "live", "batch"
QUEUE_FULL, WAITED_TOO_LONG = "queue_full", "waited_too_long"
_NEW_WEIGHT = 0.2
"""Weight of the latest request in the mean time for which a place is held."""
_MIN_RETRY_S, _MAX_RETRY_S = 1.0, 30.0
_RETRY_SPREAD = 0.5
"""Retry times vary by this part of themselves, so that clients that are rejected together do not
retry together."""
_GOLDEN = 0.618034
"""The fractional parts of its multiples are spread evenly, however many there are."""
BEGINNING_AT_ONCE = 4
"""At least this many requests may hold a place before they have sound."""
_BEGINNING_SHARE = 8
"""One in this many places may be in that state. With more places, more requests may start per
step."""
BEGINNING_S = 1.0
"""Seconds after which a request without sound no longer delays the next one."""


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Limits of the queue of live requests."""

    max_waiting: int
    """Requests that may wait for a place."""
    max_wait_s: float
    """Longest wait of a request, in seconds."""


class AdmissionPermit:
    """The place of an admitted request."""

    def __init__(self, on_begun: Callable[[], None]) -> None:
        self._on_begun = on_begun
        self._timer = asyncio.get_running_loop().call_later(BEGINNING_S, self.mark_first_sound)
        self.beginning = True
        """Whether the request has no sound yet."""

    def mark_first_sound(self) -> None:
        """Note that the first packet has been sent; may be called repeatedly."""
        if self.beginning:
            self.beginning = False
            self._timer.cancel()
            self._on_begun()


class Admission:
    """Hands out places: live requests before batches, otherwise first come, first served.

    The first place belongs to live requests: if none runs, the next one is admitted at once, beside
    a file render if necessary.

    Args:
        places: requests that run at the same time.
        limits: of the live queue.
        clock: monotonic seconds.
        slots: requests that can run at all, at least `places`; None: no bound.
        has_headroom: whether running streams can spare the time that another takes to start.
    """

    def __init__(
        self,
        places: int,
        limits: QueueLimits,
        clock: Callable[[], float] = time.monotonic,
        *,
        slots: int | None = None,
        has_headroom: Callable[[], bool] = lambda: True,
    ) -> None:
        self._places = places
        self._limits = limits
        self._clock = clock
        self._slots = slots
        self._has_headroom = has_headroom
        self._beginning = 0
        self._live: deque[_QueuedRequest] = deque()
        self._batch: deque[_QueuedRequest] = deque()
        self._running = 0
        self._extra_places = 0.0
        """Places that fast listeners take beyond the one that each of them has."""
        self._running_batch = 0
        self._mean_held_s = 0.0
        self._admitted: Counter[str] = Counter({LIVE: 0, BATCH: 0})
        self._refused: Counter[str] = Counter({QUEUE_FULL: 0, WAITED_TOO_LONG: 0})

    @property
    def report(self) -> AdmissionReport:
        """The current state."""
        return AdmissionReport(
            places=self._places,
            running=self._running,
            waiting=len(self._live),
            waiting_batch=len(self._batch),
            refused=dict(self._refused),
            admitted=dict(self._admitted),
            retry_after_s=self._turn_s,
        )

    def resize(self, places: int) -> None:
        """Change the number of places. Running requests continue, even if there are too many."""
        self._places = places
        self._admit_next()

    def look_again(self) -> None:
        """A running stream received sound: another request may be able to start."""
        if self._live or self._batch:
            self._admit_next()

    def check(self) -> None:
        """Reject a live request if the queue has no room; takes microseconds.

        Raises:
            Overloaded: the queue is full.
        """
        if len(self._live) >= self._limits.max_waiting and not self._has_room_for_live():
            count = self._running
            running = "1 request is" if count == 1 else f"{count} requests are"
            state = f"{running} running and {len(self._live)} waiting"
            raise self._build_rejection(QUEUE_FULL, state)

    @asynccontextmanager
    async def admit(
        self, *, batch: bool = False, stretch: float = 1.0
    ) -> AsyncIterator[AdmissionPermit]:
        """Wait for a place, and hold it inside the block.

        Args:
            stretch: seconds of the model's sound that its listener plays in one second; above 1
                it needs this many places.
            batch: a file render, without a listener. Such requests use only places that no live
                request wants, at most half, so that the next listener need not wait for a file.
                They wait without a time limit, outside the queue: the caller bounds their number.
                If there is one place, a single one runs while no live request does.

        Raises:
            Overloaded: the queue is full, or no place became free in time.
        """
        extra = 0.0 if batch else _extra_places(stretch)
        await (self._enter_batch() if batch else self._enter_live(extra))
        self._admitted[BATCH if batch else LIVE] += 1
        entered_s = self._clock()
        permit = AdmissionPermit(self._on_started)
        try:
            yield permit
        finally:
            permit.mark_first_sound()
            held_s = self._clock() - entered_s
            self._mean_held_s += _NEW_WEIGHT * (held_s - self._mean_held_s)
            self._leave(extra, batch=batch)

    async def _enter_live(self, extra: float) -> None:
        self.check()
        limits = self._limits
        try:
            async with asyncio.timeout(limits.max_wait_s):
                await self._wait_in(self._live, extra, batch=False)
        except TimeoutError:
            state = f"no place became free within {limits.max_wait_s:g} s"
            raise self._build_rejection(WAITED_TOO_LONG, state) from None

    async def _enter_batch(self) -> None:
        await self._wait_in(self._batch, 0.0, batch=True)

    async def _wait_in(self, queue: deque[_QueuedRequest], extra: float, *, batch: bool) -> None:
        queued = _QueuedRequest(extra)
        queue.append(queued)
        self._admit_next()
        try:
            await queued.granted
        except asyncio.CancelledError:
            if not queued.granted.cancelled():  # it was admitted at the same moment
                self._beginning -= 1
                self._leave(extra, batch=batch)
            elif queued in queue:
                queue.remove(queued)
            raise

    def _admit_next(self) -> None:
        while (queued := _find_first(self._live)) and self._has_room_for_live(queued.extra):
            self._grant(self._live)
        while _find_first(self._batch) and self._has_room_for_batch():
            self._grant(self._batch)
            self._running_batch += 1

    def _grant(self, queue: deque[_QueuedRequest]) -> None:
        queued = queue.popleft()
        queued.granted.set_result(None)
        self._running += 1
        self._extra_places += queued.extra
        self._beginning += 1

    def _has_room_for_live(self, extra: float = 0.0) -> bool:
        if self._running == self._running_batch:
            return self._slots is None or self._running < self._slots
        return self._has_places(extra) and self._can_begin()

    def _has_room_for_batch(self) -> bool:
        free = self._has_places() and self._running_batch < max(1, self._places // 2)
        return free and self._can_begin()

    def _has_places(self, extra: float = 0.0) -> bool:
        return self._running + self._extra_places + extra + 1 <= self._places

    def _can_begin(self) -> bool:
        at_once = max(BEGINNING_AT_ONCE, self._places // _BEGINNING_SHARE)
        return self._beginning < at_once and self._has_headroom()

    def _on_started(self) -> None:
        self._beginning -= 1
        self.look_again()

    def _leave(self, extra: float, *, batch: bool) -> None:
        self._running -= 1
        self._extra_places -= extra
        self._running_batch -= batch
        self._admit_next()

    @property
    def _turn_s(self) -> float:
        """Roughly when a new request would get its turn at the current rate."""
        turn_s = self._mean_held_s * (len(self._live) + 1) / max(1, self._places)
        return min(max(turn_s, _MIN_RETRY_S), _MAX_RETRY_S)

    def _build_rejection(self, reason: str, state: str) -> Overloaded:
        self._refused[reason] += 1
        return Overloaded(state, spread(self._turn_s, self._refused.total()))


def spread(retry_s: float, number: int) -> float:
    """A retry time that differs for each rejection.

    Args:
        retry_s: the usual one.
        number: of the rejection, from 1.
    """
    part = number * _GOLDEN % 1
    return retry_s * (1 + _RETRY_SPREAD * (part - 0.5))


def _extra_places(stretch: float) -> float:
    """Places beyond one, in whole quarters: their sums are exact, so they return to exactly
    zero."""
    return math.ceil(max(stretch - 1.0, 0.0) * 4) / 4


class _QueuedRequest:
    """A request that waits for a place."""

    def __init__(self, extra: float) -> None:
        self.extra = extra
        """Places that the request takes beyond one."""
        self.granted: asyncio.Future[None] = asyncio.get_running_loop().create_future()


def _find_first(queue: deque[_QueuedRequest]) -> _QueuedRequest | None:
    """The next request; those that have just given up are skipped."""
    while queue and queue[0].granted.done():
        queue.popleft()
    return queue[0] if queue else None
