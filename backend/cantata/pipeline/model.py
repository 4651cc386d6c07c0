"""What the models of a pipeline share: their start, with its warm-up and the requests that wait for
it; admission; their end."""

from __future__ import annotations

import asyncio
import logging
import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Awaitable, Callable, Coroutine, Iterable
from contextlib import asynccontextmanager, nullcontext

from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import (
    ChunkTimeout,
    Overloaded,
    StageDied,
    StartFailed,
    get_first_error,
)
from cantata.contract.data.request import PipelineRequest
from cantata.contract.service import ADMIT, TEXT, AdmissionReport
from cantata.pipeline.admission import AdmissionPolicy, Demand, Permit

RETRY_S = 5.0
"""After this time it is worth another try: nobody knows how long a model still loads."""


class ModelStart:
    """Whether a model has started, and who waits for that."""

    def __init__(self, name: str) -> None:
        self.done = False
        """Whether it has started. Its stages may be down all the same."""
        self._name = name
        self._over = asyncio.Event()
        self._failure: str | None = None
        self._waiting = 0

    async def run(self, starting: Awaitable[object]) -> None:
        """Start it; raises as `starting`."""
        try:
            await starting
            self.done = True
        except Exception as error:
            self._failure = str(error) or type(error).__name__
            raise
        finally:
            self.give_up()

    def give_up(self) -> None:
        """Nobody waits any longer."""
        self._over.set()

    async def wait(self, max_s: float, max_waiting: int) -> None:
        """Return once it has started.

        Args:
            max_waiting: requests that may wait at the same time.

        Raises:
            StartFailed: it never will.
            StageDied: it has not started in time, or the server is stopping.
            Overloaded: enough wait already.
        """
        if self._waiting >= max_waiting and not self._over.is_set():
            state = f"model {self._name!r} is loading, and {max_waiting} requests wait for it"
            raise Overloaded(state, RETRY_S)
        self._waiting += 1
        try:
            async with asyncio.timeout(max_s):
                await self._over.wait()
        except TimeoutError:
            raise StageDied(f"model {self._name!r} is still loading") from None
        finally:
            self._waiting -= 1
        if self._failure is not None:
            raise StartFailed(f"model {self._name!r} could not be started: {self._failure}")
        if not self.done:
            raise StageDied(f"model {self._name!r} is not running")


logger = logging.getLogger(__name__)


async def warm_up_together(
    warm_up: Callable[[], Coroutine[None, None, None]],
    requests: int,
    deadline_s: float,
    model: str,
) -> None:
    """Warm up with so many requests at a time. On a slow or busy machine their output may come too
    late for a listener; nobody listens yet, so it is tried again, with half as many.

    Args:
        deadline_s: no attempt begins later, by the monotonic clock.

    Raises:
        ChunkTimeout: the stages make nothing, also in an attempt that ends after the deadline.
        CantataError: whatever else a request raises, at once.
    """
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(requests):
                    group.create_task(warm_up(), name=f"{model}:warm-up:{number}")
        except ExceptionGroup as errors:
            error = get_first_error(errors)
            if not isinstance(error, ChunkTimeout) or time.monotonic() > deadline_s:
                raise error from errors
            requests = max(requests // 2, 1)
            logger.warning(
                "%s: warming up takes long (%s); trying again with %d", model, error, requests
            )
        else:
            return


class PipelineModel(ABC):
    """Implements what `contract.service.ServedModel` has of every model. A subclass plans its kind
    of requests, and reads what the pipeline makes of them.

    Args:
        policy: of the pipeline; a model that answers and one that draws may share it.
    """

    def __init__(self, policy: AdmissionPolicy) -> None:
        self.name = policy.name
        self.orchestrator = policy.orchestrator
        self._policy = policy

    @property
    def admission(self) -> AdmissionReport:
        return self._policy.report

    def check_room(self) -> None:
        self._policy.check_room()

    @abstractmethod
    async def warm_up(self) -> None:
        """Begin a request and discard it, in a pipeline that has just started."""

    @asynccontextmanager
    async def _admit(
        self, requests: Iterable[PipelineRequest], demand: Demand | None
    ) -> AsyncIterator[tuple[Permit | None, tuple[Milestone, Milestone]]]:
        """Hold a place for a request whose text has been read; its permit and milestones.

        Args:
            requests: what the pipeline is to run of it, as far as that is known.
            demand: None: nothing, so it needs no permit.

        Raises:
            InvalidRequest: it takes longer than its caller waits, even alone.
            Overloaded: there is no place in time.
            Quarantined: it has ended a stage process twice.
            StageDied: a stage is down.
        """
        for request in requests:
            self.orchestrator.check(request)
        text_read = Milestone(TEXT, time.monotonic())
        async with nullcontext() if demand is None else self._policy.admit(demand) as permit:
            yield permit, (text_read, Milestone(ADMIT, time.monotonic()))
