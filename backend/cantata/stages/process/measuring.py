"""Measures a stage's steps: histograms of all of them, and their cost, reported when it changes."""

from __future__ import annotations

from bisect import bisect_left
from collections.abc import Sequence

from cantata.contract.data.chunks import Chunk, Codes, Payload, Pcm, Progress
from cantata.contract.process.messages import Histogram, StageCapacity, StepCost, StepReport
from cantata.scheduling.step_time_model import FrameTimeModel, StepTimeModel

_SECONDS = (0.001, 0.002, 0.005, 0.01, 0.02, 0.03, 0.04, 0.06, 0.08, 0.12, 0.2, 0.5, 1.0)
_REQUESTS = (0.0, 1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 128.0)
REPORTED_CHANGE = 0.05
"""A relative change of the steps' cost that is worth a report."""


class StepMeter:
    """Histograms of steps, by duration and by batch; adding a step takes about a microsecond."""

    def __init__(self) -> None:
        self._seconds = _HistogramBuilder(_SECONDS)
        self._batch = _HistogramBuilder(_REQUESTS)

    def add(self, seconds: float, requests: int) -> None:
        """Count a step that produced output for this many requests."""
        self._seconds.add(seconds)
        self._batch.add(requests)

    @property
    def report(self) -> StepReport:
        return StepReport(self._seconds.build(), self._batch.build())


class _HistogramBuilder:
    def __init__(self, bounds: tuple[float, ...]) -> None:
        self._bounds = bounds
        self._counts = [0] * (len(bounds) + 1)
        self._total = 0.0

    def add(self, value: float) -> None:
        self._counts[bisect_left(self._bounds, value)] += 1
        self._total += value

    def build(self) -> Histogram:
        return Histogram(self._bounds, tuple(self._counts), self._total)


class StepWatch:
    """Measures every step of one stage."""

    def __init__(self, capacity: StageCapacity) -> None:
        self._capacity = capacity
        self._time_model = StepTimeModel() if capacity.batches_requests else FrameTimeModel()
        self._meter = StepMeter()
        self._reported: StepCost | None = None
        self._free_s = 0.0
        """Since when the stage could have run its next step."""

    @property
    def report(self) -> StepReport:
        return self._meter.report

    def mark_idle(self, now_s: float) -> None:
        """There was no work before."""
        self._free_s = now_s

    def measure(
        self, chunks: Sequence[Chunk[Payload]], began_s: float, ended_s: float
    ) -> StepCost | None:
        """Record a step; returns the steps' cost if it has changed enough to report.

        A listener waits for a step and for the work between it and the one before: messages,
        prompts of new requests. Both count as the step's time. Nobody listens to a stage without a
        frame period, so its steps cost no listener anything.
        """
        self._meter.add(ended_s - began_s, len({chunk.request_id for chunk in chunks}))
        if self._capacity.frame_period_s is None:
            return None
        seconds, self._free_s = ended_s - self._free_s, ended_s
        self._time_model.measure(count_frames(chunks, self._capacity), seconds, ended_s)
        cost = self._time_model.cost
        if cost is None or not self._has_changed(cost):
            return None
        self._reported = cost
        return cost

    def _has_changed(self, cost: StepCost) -> bool:
        """Whether the last report is now wrong, for one request or for all."""
        if self._reported is None:
            return True
        reported, extremes = self._reported, (1, self._capacity.slots)
        return any(
            abs(cost.seconds(n) / reported.seconds(n) - 1) > REPORTED_CHANGE for n in extremes
        )


def count_frames(chunks: Sequence[Chunk[Payload]], capacity: StageCapacity) -> int:
    """How many frames these contain, as codes, as sound or as the progress of
    a picture. Rows are none."""
    samples_per_frame = round((capacity.frame_period_s or 0) * (capacity.sample_rate or 0))
    frames = 0
    for chunk in chunks:
        match chunk.payload:
            case Codes() as codes:
                frames += codes.units
            case Pcm() as sound:
                frames += sound.units // samples_per_frame
            case Progress() as progress:
                frames += progress.units
    return frames
