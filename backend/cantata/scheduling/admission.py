"""Who may enter: as many requests as can be played without a gap, a short queue, a clear no."""

from __future__ import annotations

import asyncio
import time
from collections import Counter, deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass

from cantata.contract.errors import Overloaded
from cantata.contract.service import AdmissionReport

LIVE, BATCH = "live", "batch"
QUEUE_FULL, WAITED_TOO_LONG = "queue_full", "waited_too_long"
_NEW_WEIGHT = 0.2
"""Of the latest request in the mean time for which a place is held."""
_MIN_RETRY_S, _MAX_RETRY_S = 1.0, 30.0


@dataclass(frozen=True, slots=True)
class QueueLimits:
    """Bounds of the queue of live requests."""

    max_waiting: int
    """Requests that may wait for a place."""
    max_wait_s: float
    """Seconds that one waits at most."""


class Admission:
    """Hands out places: live requests first, among equals first come first served.

    Args:
        places: requests that run at the same time.
        limits: of the live queue.
        clock: monotonic seconds.
    """

    def __init__(
        self, places: int, limits: QueueLimits, clock: Callable[[], float] = time.monotonic
    ) -> None:
        self._places = places
        self._limits = limits
        self._clock = clock
        self._live: deque[asyncio.Future[None]] = deque()
        self._batch: deque[asyncio.Future[None]] = deque()
        self._running = 0
        self._running_batch = 0
        self._mean_held_s = 0.0
        self._admitted: Counter[str] = Counter({LIVE: 0, BATCH: 0})
        self._refused: Counter[str] = Counter({QUEUE_FULL: 0, WAITED_TOO_LONG: 0})

    @property
    def report(self) -> AdmissionReport:
        """How it is now."""
        return AdmissionReport(
            places=self._places,
            running=self._running,
            waiting=len(self._live),
            waiting_batch=len(self._batch),
            refused=dict(self._refused),
            admitted=dict(self._admitted),
        )

    def resize(self, places: int) -> None:
        """Change how many may run. Who runs goes on, also where there are too many now."""
        self._places = places
        self._let_in()

    @asynccontextmanager
    async def admit(self, *, batch: bool = False) -> AsyncIterator[None]:
        """Hold a place inside the block.

        Args:
            batch: nobody listens. Such requests use the places that no live request wants, at most
                half of them, since the next listener should not have to wait for a file. They
                wait as long as it takes, outside the limits: who asks for them bounds their number.

        Raises:
            Overloaded: the queue is full, or no place became free in time.
        """
        await (self._enter_batch() if batch else self._enter_live())
        self._admitted[BATCH if batch else LIVE] += 1
        entered_s = self._clock()
        try:
            yield
        finally:
            held_s = self._clock() - entered_s
            self._mean_held_s += _NEW_WEIGHT * (held_s - self._mean_held_s)
            self._leave(batch=batch)

    async def _enter_live(self) -> None:
        limits = self._limits
        if self._running >= self._places and len(self._live) >= limits.max_waiting:
            state = f"{self._running} requests are running and {len(self._live)} waiting"
            raise self._refusal(QUEUE_FULL, state)
        try:
            async with asyncio.timeout(limits.max_wait_s):
                await self._wait_in(self._live, batch=False)
        except TimeoutError:
            state = f"no place became free within {limits.max_wait_s:g} s"
            raise self._refusal(WAITED_TOO_LONG, state) from None

    async def _enter_batch(self) -> None:
        await self._wait_in(self._batch, batch=True)

    async def _wait_in(self, queue: deque[asyncio.Future[None]], *, batch: bool) -> None:
        turn = asyncio.get_running_loop().create_future()
        queue.append(turn)
        self._let_in()
        try:
            await turn
        except asyncio.CancelledError:
            if not turn.cancelled():  # it was let in at the very moment
                self._leave(batch=batch)
            elif turn in queue:
                queue.remove(turn)
            raise

    def _let_in(self) -> None:
        while self._running < self._places and _call_first(self._live):
            self._running += 1
        while self._has_room_for_batch() and _call_first(self._batch):
            self._running += 1
            self._running_batch += 1

    def _has_room_for_batch(self) -> bool:
        return self._running < self._places and self._running_batch < max(1, self._places // 2)

    def _leave(self, *, batch: bool) -> None:
        self._running -= 1
        self._running_batch -= batch
        self._let_in()

    def _refusal(self, reason: str, state: str) -> Overloaded:
        """A no, and when a newcomer would have its turn if all went on as it does."""
        self._refused[reason] += 1
        turn_s = self._mean_held_s * (len(self._live) + 1) / self._places
        return Overloaded(state, min(max(turn_s, _MIN_RETRY_S), _MAX_RETRY_S))


def _call_first(queue: deque[asyncio.Future[None]]) -> bool:
    """Whether there was one to call; those that have just given up are passed over."""
    while queue:
        turn = queue.popleft()
        if not turn.done():
            turn.set_result(None)
            return True
    return False
