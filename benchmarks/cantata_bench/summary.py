"""Requests in figures."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cantata_bench.results import RESERVES_S, ListenedRequest, LoadSummary, Spread

ELSEWHERE = "elsewhere"
"""Name of the part of a first packet's time that no step of the server accounts for: sockets, and
the client."""


def spread(values: Sequence[float]) -> Spread:
    """Percentiles, interpolated between neighbours; of at least one value."""
    p50, p90, p95, p99 = (float(v) for v in np.percentile(values, (50, 90, 95, 99)))
    return Spread(p50=p50, p90=p90, p95=p95, p99=p99, max=float(max(values)))


def summarize(records: Sequence[ListenedRequest], throughput_x: float) -> LoadSummary | None:
    """The figures of one load; None if nothing was spoken.

    Args:
        records: of requests sent after the warm-up.
        throughput_x: seconds of sound that arrived per second.
    """
    spoken = [record for record in records if record.outcome == "spoken"]
    if not spoken:
        return None
    words = sum(record.words for record in spoken)
    return LoadSummary(
        spoken=len(spoken),
        failed=sum(record.outcome == "failed" for record in records),
        refused=sum(record.outcome == "refused" for record in records),
        refusals=sum(record.refusals for record in records),
        header=spread([record.header_s for record in spoken]),
        ttfp=spread([record.ttfp_s for record in spoken]),
        ttfp_steps=_spread_steps([record for record in spoken if record.timeline]),
        onset=spread([record.onset_s for record in spoken]),
        e2e=spread([record.e2e_s for record in spoken]),
        rtf=spread([record.rtf for record in spoken]),
        interval=spread([record.interval_max_s for record in spoken]),
        continuous=tuple(
            sum(not record.underruns_s[index] for record in spoken) / len(spoken)
            for index in range(len(RESERVES_S))
        ),
        underrun_max_s=max(record.underruns_s[0] for record in spoken),
        throughput_x=throughput_x,
        wer=sum(record.word_errors for record in spoken) / words if words else None,
    )


def _spread_steps(records: Sequence[ListenedRequest]) -> dict[str, Spread]:
    names = dict.fromkeys(name for record in records for name in record.timeline)
    steps = {name: spread([r.timeline.get(name, 0.0) for r in records]) for name in names}
    if records:
        steps[ELSEWHERE] = spread([r.ttfp_s - sum(r.timeline.values()) for r in records])
    return steps
