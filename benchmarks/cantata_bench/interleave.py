"""Loads that are compared: measured in turns, so that the machine is the same for both.

A machine's speed drifts within half a minute. A pair of turns that something disturbed is measured
again.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from statistics import fmean
from typing import TypeVar

from cantata_bench.noise_guard import ATTEMPTS, wait_for_calm
from cantata_bench.results import ClientHealth, LoadResult, LoadSpec, ProcessUse
from cantata_bench.summary import summarize

R = TypeVar("R")

TURNS = 3
REPETITIONS = 8
"""Most repetitions in a whole run."""
_WARM_UP_S = 1.0
"""Seconds of a turn's warm-up; both servers are already warm."""

Measure = Callable[[LoadSpec], LoadResult]


@dataclass(slots=True)
class RepeatBudget:
    """How often a run repeats what was disturbed; on a machine that is never calm it ends."""

    tell: Callable[[str], None]
    left: int = REPETITIONS

    def repeated(self, measure: Callable[[], R], doubt: Callable[[R], str]) -> R:
        """The first measurement without a doubt, or the last of `ATTEMPTS`."""
        found = measure()
        for _ in range(ATTEMPTS - 1):
            if not doubt(found) or not self.left:
                break
            self.left -= 1
            self.tell(f"again, on a calm machine: {doubt(found)}")
            wait_for_calm()
            found = measure()
        return found


def in_turns(
    spec: LoadSpec, first: Measure, second: Measure, patience: RepeatBudget
) -> tuple[LoadResult, LoadResult]:
    """Run one load on two servers, a part on one, then a part on the other, and so on."""
    part = spec.model_copy(
        update={
            "seconds": spec.seconds / TURNS,
            "warm_up_s": min(spec.warm_up_s, _WARM_UP_S),
        }
    )
    pairs = [
        patience.repeated(
            lambda: (first(part), second(part)),
            lambda pair: pair[0].doubt or pair[1].doubt,
        )
        for _ in range(TURNS)
    ]
    return merged(spec, [a for a, _ in pairs]), merged(spec, [b for _, b in pairs])


def merged(spec: LoadSpec, parts: Sequence[LoadResult]) -> LoadResult:
    requests = tuple(request for part in parts for request in part.requests)
    throughput_x = fmean(part.summary.throughput_x if part.summary else 0.0 for part in parts)
    return LoadResult(
        spec=spec,
        summary=summarize(requests, throughput_x),
        requests=requests,
        packets=sum(part.packets for part in parts),
        audio_s=sum(part.audio_s for part in parts),
        wall_s=sum(part.wall_s for part in parts),
        client=ClientHealth(
            cpu_s=sum(part.client.cpu_s for part in parts),
            lag_p99_s=max(part.client.lag_p99_s for part in parts),
            lag_max_s=max(part.client.lag_max_s for part in parts),
            behind=any(part.client.behind for part in parts),
        ),
        processes=_sum_use([process for part in parts for process in part.processes]),
        disturbance=", ".join(dict.fromkeys(p.disturbance for p in parts if p.disturbance)),
    )


def _sum_use(processes: Sequence[ProcessUse]) -> tuple[ProcessUse, ...]:
    """Sums by name: all CPU time, and the highest peak."""
    by_name: dict[str, ProcessUse] = {}
    for process in processes:
        before = by_name.get(process.name)
        by_name[process.name] = (
            process
            if before is None
            else ProcessUse(
                name=process.name,
                cpu_s=before.cpu_s + process.cpu_s,
                peak_rss_bytes=max(before.peak_rss_bytes, process.peak_rss_bytes),
            )
        )
    return tuple(by_name.values())
