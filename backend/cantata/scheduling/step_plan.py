"""Chooses the jobs of a denoiser that advance next, and together.

Between two steps a job may begin, wait, advance or go: its state is small and stays in its slot.
So the order is decided anew for each forward: jobs with a deadline that is near, then those that
are done soonest, and before them all those that have waited long for what they need themselves.
The first job in that order is sure to advance; others join its forward where that helps more than
it delays. Knows no model and no tensor and reads no clock.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence
from dataclasses import dataclass, replace

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost

PATIENCE = 3.0
"""A job that has been here for more than this many times its own work precedes shorter ones."""
URGENT = 1.5
"""A job with a deadline goes first if at most this many times its remaining work fits until
then."""


@dataclass(frozen=True, slots=True)
class JobView:
    """What the plan needs to know about one job."""

    request_id: str
    size: ForwardSize
    """Size of the next step."""
    steps: int
    """Number of all steps."""
    steps_left: int
    arrived_s: float
    """When the job arrived, on any monotonic clock."""
    group: Hashable = None
    """Only jobs of one group share a forward."""
    deadline_s: float = math.inf
    """When its client stops waiting, on the same clock."""
    batch: bool = False
    """Whether it only uses what others leave."""
    writes: bool = False
    """Whether it makes a text and no picture."""
    later: ForwardSize | None = None
    """Size of each later step; None: as the next one's. The plan uses it, the forecast does not."""

    def work_s(self, cost: ForwardCost) -> float:
        """Seconds that all its steps take alone."""
        return self._sum_seconds(self.steps, cost)

    def left_s(self, cost: ForwardCost) -> float:
        """Seconds that its remaining steps take alone."""
        return self._sum_seconds(self.steps_left, cost)

    def _sum_seconds(self, steps: int, cost: ForwardCost) -> float:
        if self.later is None:
            return steps * cost.seconds(self.size)
        return cost.seconds(self.size) + (steps - 1) * cost.seconds(self.later)


def plan(
    jobs: Sequence[JobView], cost: ForwardCost, max_tokens: int, now_s: float
) -> tuple[JobView, ...]:
    """The jobs of the next forward; empty without jobs.

    A forward costs a fixed time, and some for each job in it. A job that joins saves the fixed time
    of a forward of its own, which all that wait behind it would wait for too; and it delays those
    that are in already. It joins if that lowers the mean latency.

    Args:
        jobs: that can advance.
        cost: of a forward.
        max_tokens: of one forward; a single job may have more.
        now_s: on the jobs' clock.
    """
    waiting = sorted(jobs, key=lambda job: _rank(job, cost, now_s))
    if not waiting:
        return ()
    first, *others = waiting
    chosen, size = [first], first.size
    for place, job in enumerate(others):
        together = size + job.size
        if job.group != first.group or together.tokens > max_tokens:
            continue
        delay_s = cost.seconds(together) - cost.seconds(size)
        behind = len(others) - place
        if len(chosen) * delay_s <= behind * cost.fixed_s:
            chosen.append(job)
            size = together
    return tuple(chosen)


def _rank(job: JobView, cost: ForwardCost, now_s: float) -> tuple[int, float, float]:
    """Sort key, ascending; the last value keeps equal jobs in the order of their arrival."""
    if job.batch:
        return 4, job.arrived_s, 0.0
    left_s = job.left_s(cost)
    slack_s = job.deadline_s - now_s - left_s
    waited = (now_s - job.arrived_s) / job.work_s(cost)
    # However many urgent ones there are, nobody waits forever.
    if waited > 2 * PATIENCE:
        return 0, job.arrived_s, 0.0
    # One that is late in any case must not make others late.
    if 0 <= slack_s <= (URGENT - 1) * left_s:
        return 1, slack_s, job.arrived_s
    if waited > PATIENCE:
        return 2, job.arrived_s, 0.0
    return 3, left_s, job.arrived_s


def finish_times(
    jobs: Sequence[JobView], cost: ForwardCost, max_tokens: int, now_s: float
) -> dict[str, float]:
    """When each job would be done if no other came, by running the plan ahead.

    Several steps count as one while the same jobs advance, so this is quick, and slightly wrong
    where a job becomes urgent in between.
    """
    left = {job.request_id: job for job in jobs}
    finished: dict[str, float] = {}
    while left:
        chosen = plan(list(left.values()), cost, max_tokens, now_s)
        size = chosen[0].size
        for job in chosen[1:]:
            size = size + job.size
        steps = min(job.steps_left for job in chosen)
        now_s += steps * cost.seconds(size)
        for job in chosen:
            if job.steps_left == steps:
                finished[job.request_id] = now_s
                del left[job.request_id]
            else:
                left[job.request_id] = replace(job, steps_left=job.steps_left - steps)
    return finished


_FIRST = 256.0
"""Steps of a text before any has ended."""
_NEW_WEIGHT = 0.2
"""Weight of the latest text in the mean."""


class OutputLengthEstimator:
    """The mean length of texts so far, in steps: a token is one, and so is a piece that is read."""

    def __init__(self) -> None:
        self._mean = _FIRST

    def record_length(self, steps: int) -> None:
        """A text had so many."""
        self._mean += _NEW_WEIGHT * (steps - self._mean)

    def left(self, most: int) -> int:
        """Steps that a text still has, as far as one can tell: however long it is already, it goes
        on for as long as texts usually are.

        Args:
            most: that it may have, at least 1.
        """
        return max(1, min(most, round(self._mean)))
