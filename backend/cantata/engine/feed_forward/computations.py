"""What waits to be computed, for which requests, and what was computed before."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field

from cachetools import LRUCache

from cantata.contract.data.chunks import array_of
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import StageInput
from cantata.contract.model.feed_forward import FeedForwardOutput
from cantata.contract.process.steps import ReuseReport


@dataclass(slots=True)
class Computation:
    """One input, and the requests that wait for its output."""

    inputs: StageInput
    key: bytes | None
    requests: dict[str, bool] = field(default_factory=dict)
    """Their ids, and whether each is a file render."""

    @property
    def is_batch(self) -> bool:
        """Whether only file renders wait for it."""
        return all(self.requests.values())


class Computations:
    """One stage's.

    Args:
        limit_bytes: of the results that are kept; the least recently used one is dropped first.
    """

    def __init__(self, limit_bytes: int) -> None:
        self._waiting: list[Computation] = []
        self._kept: LRUCache[bytes, FeedForwardOutput] = LRUCache(limit_bytes, size_of)
        self._encodes = self._hits = self._joined = 0

    @property
    def waiting(self) -> bool:
        """Whether any input waits."""
        return bool(self._waiting)

    @property
    def requests(self) -> set[str]:
        """Ids of the requests that wait."""
        return {request_id for waiting in self._waiting for request_id in waiting.requests}

    @property
    def report(self) -> ReuseReport:
        """What was reused so far."""
        return ReuseReport(self._encodes, self._hits, self._joined, int(self._kept.currsize))

    def request(
        self, request_id: str, inputs: StageInput, key: bytes | None, *, batch: bool
    ) -> FeedForwardOutput | None:
        """The kept output of this input; None: the request waits for it, with others that have the
        same."""
        if key is not None and (output := self._kept.get(key)) is not None:
            self._hits += 1
            return output
        same = (waiting for waiting in self._waiting if key is not None and waiting.key == key)
        computation = next(same, None)
        if computation is None:
            computation = Computation(inputs, key)
            self._waiting.append(computation)
        else:
            self._joined += 1
        computation.requests[request_id] = batch
        return None

    def abort(self, request_id: str) -> None:
        """The request no longer waits; what nobody waits for is not computed."""
        for computation in self._waiting:
            computation.requests.pop(request_id, None)
        self._waiting = [waiting for waiting in self._waiting if waiting.requests]

    def take(self, count: int) -> Sequence[Computation]:
        """Remove the next ones: those that listeners wait for before file renders, otherwise first
        come, first served."""
        ordered = sorted(self._waiting, key=lambda waiting: waiting.is_batch)
        self._waiting = ordered[count:]
        return ordered[:count]

    def finish(self, computation: Computation, outcome: FeedForwardOutput | CantataError) -> None:
        """A computation has ended; an error is not kept."""
        self._encodes += 1
        if isinstance(outcome, CantataError) or computation.key is None:
            return
        if size_of(outcome) <= self._kept.maxsize:
            self._kept[computation.key] = outcome


def size_of(output: FeedForwardOutput) -> int:
    """Bytes of an output's arrays."""
    return sum(array_of(payload).nbytes for payload in output.values())
