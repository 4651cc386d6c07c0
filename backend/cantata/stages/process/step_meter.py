"""A stage's steps in numbers: counted where they run, sent on request."""

from __future__ import annotations

from bisect import bisect_left

from cantata.contract.process.steps import Histogram, StepReport

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.5, 1.0)
_REQUESTS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)


class StepMeter:
    """Two histograms; adding a step to them takes about a microsecond."""

    def __init__(self) -> None:
        self._seconds = _Growing(_SECONDS)
        self._batch = _Growing(_REQUESTS)

    def add(self, seconds: float, requests: int) -> None:
        """Count a step that produced output for this many requests."""
        self._seconds.add(seconds)
        self._batch.add(requests)

    @property
    def report(self) -> StepReport:
        """All steps so far."""
        return StepReport(self._seconds.frozen(), self._batch.frozen())


class _Growing:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def frozen(self) -> Histogram:
        return Histogram(self._bounds, tuple(self._counts), self._total)
