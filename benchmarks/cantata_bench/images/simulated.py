"""Qwen-Image of published size on one H200, simulated: the plan against first come, first served.

The times of its forwards are measured ones of others, compiled, 50 steps with guidance. No model of
that size has been drawn with here.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from functools import reduce
from operator import add

import numpy as np

from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost
from cantata.scheduling.forward_time_model import ForwardTimeModel
from cantata.scheduling.step_plan import JobView, plan

MEASURED_S = {
    (512, 1): 0.167,
    (512, 2): 0.183,
    (512, 3): 0.186,
    (512, 4): 0.240,
    (512, 8): 0.425,
    (1024, 1): 0.243,
    (1024, 2): 0.474,
    (1024, 3): 0.711,
}
"""Side of the pictures in pixels, how many of them share a forward -> its seconds."""
TEXT_TOKENS = 80
MAX_TOKENS = 65_536
SIDES, SHARES = (512, 768, 1024), (0.4, 0.2, 0.4)
STEPS = (8, 28, 50)

Chooser = Callable[[Sequence[JobView], ForwardCost, float], Sequence[JobView]]


@dataclass(frozen=True, slots=True)
class Waited:
    """The latencies of one simulated load, in seconds."""

    mean_s: float
    p95_s: float


def get_size(side: int, pictures: int = 1) -> ForwardSize:
    """Size of a step of guided square pictures: both branches."""
    tokens = (side // 16) ** 2 + TEXT_TOKENS
    return ForwardSize(2 * pictures * tokens, 2 * pictures * tokens**2)


def published_cost() -> ForwardCost:
    """The fit of what was measured."""
    pace = ForwardTimeModel()
    for _ in range(40):
        for (side, pictures), seconds in MEASURED_S.items():
            pace.measure(get_size(side, pictures), seconds)
    cost = pace.cost
    assert cost is not None
    return cost


def arrivals(cost: ForwardCost, utilization: float, number: int, seed: int) -> list[JobView]:
    """Pictures of mixed sizes and steps, as they come, that one at a time would keep the GPU busy
    for this share of the time."""
    rng = np.random.default_rng(seed)
    kinds = [(int(rng.choice(SIDES, p=SHARES)), int(rng.choice(STEPS))) for _ in range(number)]
    work_s = sum(steps * cost.seconds(get_size(side)) for side, steps in kinds)
    times = np.sort(rng.uniform(0, work_s / utilization, number))
    return [
        JobView(f"{n}", get_size(side), steps, steps, float(at_s))
        for n, ((side, steps), at_s) in enumerate(zip(kinds, times, strict=True))
    ]


def finished(jobs: Sequence[JobView], cost: ForwardCost, choose: Chooser) -> dict[str, float]:
    """When each job of a load is done, if every forward takes what it costs."""
    now_s, left, ended = 0.0, {job.request_id: job for job in jobs}, dict[str, float]()
    while left:
        here = [job for job in left.values() if job.arrived_s <= now_s]
        if not here:
            now_s = min(job.arrived_s for job in left.values())
            continue
        chosen = choose(here, cost, now_s)
        now_s += cost.seconds(reduce(add, (job.size for job in chosen)))
        for job in chosen:
            if job.steps_left > 1:
                left[job.request_id] = replace(job, steps_left=job.steps_left - 1)
            else:
                del left[job.request_id]
                ended[job.request_id] = now_s
    return ended


def simulate(jobs: Sequence[JobView], cost: ForwardCost, choose: Chooser) -> Waited:
    """A load's latencies."""
    ended = finished(jobs, cost, choose)
    latencies = [ended[job.request_id] - job.arrived_s for job in jobs]
    return Waited(float(np.mean(latencies)), float(np.quantile(latencies, 0.95)))


def by_plan(jobs: Sequence[JobView], cost: ForwardCost, now_s: float) -> Sequence[JobView]:
    """Choose as the stage does."""
    return plan(jobs, cost, MAX_TOKENS, now_s)


def first_come(jobs: Sequence[JobView], cost: ForwardCost, now_s: float) -> Sequence[JobView]:
    """Draw one picture at a time, to its end."""
    return [min(jobs, key=lambda job: job.arrived_s)]
