"""What all models on replicas have in common: their voices, their queue and their admission."""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import AsyncGenerator, AsyncIterator, Callable
from contextlib import aclosing, asynccontextmanager
from typing import Generic, TypeVar

from cantata.contract.catalogue import find_voice
from cantata.contract.data.errors import Quarantined
from cantata.contract.data.request import Voice
from cantata.contract.service import AdmissionReport
from cantata.distributed.edge.crash_tracker import Refusals, RequestFingerprint
from cantata.distributed.edge.remote_work import E, O, RemoteCall, RemoteWork, Replay
from cantata.distributed.edge.replicas import Replicas
from cantata.distributed.edge.waiting import Waiting
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.model_advertisement import AnsweringModel, Card, SpeakingModel

A = TypeVar("A", bound=Card)
V = TypeVar("V", bound=SpeakingModel | AnsweringModel)


class RemoteServed(Generic[A]):
    """One model of any kind. `queue`: of the requests for every model of this name."""

    def __init__(self, replicas: Replicas, queue: Waiting, card: A) -> None:
        self.card: A = card
        """May be replaced by a newer card with the same name."""
        self._replicas = replicas
        self._queue = queue
        self._refusals = Refusals()

    @property
    def name(self) -> str:
        """Its name at the replicas."""
        return self.card.name

    @property
    def admission(self) -> AdmissionReport:
        """The admission of all replicas together, with this edge's own queue."""
        return total_admission(self._replicas, self.name, self._queue)

    def check_room(self) -> None:
        """Reject a live request that the queue has no room for; takes microseconds. Raises
        Overloaded: the queue is full."""
        self._queue.check()

    @asynccontextmanager
    async def _run_work(
        self, work: RemoteWork[O, E]
    ) -> AsyncIterator[tuple[O, AsyncGenerator[E, None]]]:
        """Have some work done; its first answer, and its events. Leaving the block frees it at its
        replica. Raises Quarantined: the request has ended stage processes or replicas."""
        self._refusals.check(work.asked)
        async with self._replicas.crash_tracker.admit(work.asked):
            try:
                opened = await work.open()
                async with aclosing(work.events()) as events:
                    yield opened, events
            except Quarantined as error:
                self._refusals.add(work.asked, error)
                raise
            finally:
                # A second cancellation must not leave the request behind at the replica.
                await asyncio.shield(asyncio.create_task(work.close()))

    def _build_work(
        self,
        call: RemoteCall[O, E],
        content: object | None,
        replay: Replay[E],
        on_stream: Callable[[LinkStream], None] = lambda stream: None,
    ) -> RemoteWork[O, E]:
        """Work for `_run_work`; `content`: by which the request is known again."""
        asked = RequestFingerprint(self.name, content)
        return RemoteWork(call, asked, self._replicas.crash_tracker, self._queue, replay, on_stream)


class RemoteVoiced(RemoteServed[V]):
    """One model that makes sound."""

    @property
    def voices(self) -> tuple[Voice, ...]:
        return self.card.voices

    @property
    def sample_rate(self) -> int:
        """Hz; 0 without voices, as the next one."""
        return self.card.sample_rate

    @property
    def channels(self) -> int:
        return self.card.channels

    def get_voice(self, name: str | None) -> Voice:
        """Look a voice up by id, name or alias; None is the default. Raises VoiceNotFound: lists
        the valid ids."""
        return find_voice(self.voices, name, self.name)


def total_admission(replicas: Replicas, model: str, waiting: Waiting) -> AdmissionReport:
    reports = [
        state.admission for peer in replicas.peers if (state := peer.state(model)) is not None
    ]
    admitted: Counter[str] = Counter()
    refused = Counter(waiting.refused)
    for report in reports:
        admitted.update(report.admitted)
        refused.update(report.refused)
    return AdmissionReport(
        places=sum(report.places for report in reports),
        running=sum(report.running for report in reports),
        waiting=len(waiting) + sum(report.waiting for report in reports),
        waiting_batch=sum(report.waiting_batch for report in reports),
        refused=refused,
        admitted=admitted,
        slots=sum(report.slots for report in reports),
        slots_in_use=sum(report.slots_in_use for report in reports),
        quarantined=replicas.crash_tracker.quarantined[model]
        + sum(report.quarantined for report in reports),
        retry_after_s=min((report.retry_after_s for report in reports), default=1.0),
    )
