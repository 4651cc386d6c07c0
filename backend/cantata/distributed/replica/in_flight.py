"""Limits the requests in flight at a replica: each is admitted at once or refused, never queued.

A server's own queue would hold a request back while another replica is free, so the edges queue.
The model's admission may still delay the start of a burst.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from typing import Protocol

from cantata.contract.data.errors import Overloaded, StageDied
from cantata.contract.service import AdmissionReport
from cantata.distributed.messages import ModelState


class Admitting(Protocol):
    """The part of a model of any kind that the limiter reads."""

    @property
    def admission(self) -> AdmissionReport: ...


class InFlightLimiter:
    """Counts the live requests of each model. `models`: of every kind, by name."""

    def __init__(self, models: Mapping[str, Admitting]) -> None:
        self._models = models
        self._live: Counter[str] = Counter()
        self._served: Counter[str] = Counter()
        self.draining = False
        """Nothing new is taken."""

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(self._models)

    def admission(self, name: str) -> AdmissionReport:
        return self._models[name].admission

    @property
    def in_flight(self) -> int:
        """Orders of all models that are being served."""
        return self._served.total()

    def in_use(self, name: str) -> int:
        """Orders of a model that are being served."""
        return self._served[name]

    def free(self, name: str) -> int:
        """Orders for a model that would get a place now."""
        if self.draining:
            return 0
        return max(0, self._models[name].admission.places - self._live[name])

    def state(self, name: str, ordered: int) -> ModelState:
        """What an edge learns about a model. `ordered`: live requests that came from it."""
        return ModelState(self._models[name].admission, self.free(name), ordered)

    @contextmanager
    def count_request(self, name: str, *, gated: bool = True, live: bool = True) -> Iterator[None]:
        """Count a request for the time of the block.

        Args:
            gated: it needs a free place; otherwise the model's own admission decides.
            live: it takes one.

        Raises:
            Overloaded: no place is free.
            StageDied: the replica takes nothing new.
        """
        if self.draining:
            raise StageDied("the replica is stopping")
        if gated and not self.free(name):
            report = self._models[name].admission
            state = f"all {report.places} places of the replica are taken"
            raise Overloaded(state, report.retry_after_s)
        self._live[name] += live
        self._served[name] += 1
        try:
            yield
        finally:
            self._live[name] -= live
            self._served[name] -= 1

    @contextmanager
    def hold_place(self, name: str) -> Iterator[None]:
        """Count, for the time of the block, a place that a request takes which was not live while
        it waited."""
        self._live[name] += 1
        try:
            yield
        finally:
            self._live[name] -= 1
