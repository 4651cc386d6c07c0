"""What waits to be computed, for which requests, and what was computed before."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from cachetools import LRUCache

from cantata.contract.data.chunks import to_array
from cantata.contract.data.errors import CantataError
from cantata.contract.model.feed_forward import FeedForwardOutput
from cantata.contract.process.messages import ReuseReport

Outcome = FeedForwardOutput | CantataError


@dataclass(slots=True)
class _Computation:
    """One input, and the requests that wait for its output."""

    inputs: Any
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
        self._waiting: list[_Computation] = []
        self._running: list[_Computation] = []
        self._kept: LRUCache[bytes, FeedForwardOutput] = LRUCache(limit_bytes, _measure_size)
        self._encodes = self._hits = self._joined = 0

    @property
    def waiting(self) -> bool:
        """Whether any input waits."""
        return bool(self._waiting)

    @property
    def requests(self) -> set[str]:
        """Ids of the requests that have no output yet."""
        return {name for one in (*self._running, *self._waiting) for name in one.requests}

    @property
    def report(self) -> ReuseReport:
        """What was reused so far."""
        return ReuseReport(self._encodes, self._hits, self._joined, int(self._kept.currsize))

    def request(
        self, request_id: str, inputs: Any, key: bytes | None, *, batch: bool
    ) -> FeedForwardOutput | None:
        """The kept output of this input; None: the request waits for it, with others that have the
        same."""
        if key is not None and (output := self._kept.get(key)) is not None:
            self._hits += 1
            return output
        known = (*self._running, *self._waiting)
        computation = next((one for one in known if key is not None and one.key == key), None)
        if computation is None:
            computation = _Computation(inputs, key)
            self._waiting.append(computation)
        else:
            self._joined += 1
        computation.requests[request_id] = batch
        return None

    def abort(self, request_id: str) -> None:
        """The request no longer waits. What nobody waits for is not begun; what runs goes on, and
        its output is kept."""
        for one in (*self._running, *self._waiting):
            one.requests.pop(request_id, None)
        self._waiting = [one for one in self._waiting if one.requests]

    def begin(self, count: int) -> Sequence[Any]:
        """The next inputs, at most `count`: those that listeners wait for before file renders,
        otherwise first come, first served. `finish` comes before the next call."""
        ordered = sorted(self._waiting, key=lambda one: one.is_batch)
        self._running, self._waiting = ordered[:count], ordered[count:]
        return [one.inputs for one in self._running]

    def finish(self, outcomes: Iterable[Outcome]) -> list[tuple[str, Outcome]]:
        """What came of the inputs that `begin` gave, for each request; errors are not kept."""
        running, self._running = self._running, []
        found: list[tuple[str, Outcome]] = []
        for one, outcome in zip(running, outcomes, strict=True):
            self._encodes += 1
            self._keep(one.key, outcome)
            found += [(request_id, outcome) for request_id in one.requests]
        return found

    def _keep(self, key: bytes | None, outcome: Outcome) -> None:
        if key is None or isinstance(outcome, CantataError):
            return
        if _measure_size(outcome) <= self._kept.maxsize:
            self._kept[key] = outcome


def _measure_size(output: FeedForwardOutput) -> int:
    """Bytes of an output's arrays."""
    return sum(to_array(payload).nbytes for payload in output.values())
