"""What the models of a pipeline share: its start and end, and admission."""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator, Iterable
from contextlib import asynccontextmanager, nullcontext

from cantata.contract.data.chunks import Milestone
from cantata.contract.data.request import PipelineRequest
from cantata.contract.service import ADMIT, TEXT, AdmissionReport
from cantata.pipeline.admission import AdmissionPolicy, Demand, Permit


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
