"""How far a system goes: live listeners at a time, and what the last of them hear."""

from __future__ import annotations

from collections.abc import Sequence

from cantata_bench.results import LoadSpec
from cantata_bench.simulator.loads import Prediction, simulate
from cantata_bench.simulator.system import System
from cantata_bench.tables import ms, percent, table


def scale(system: System, streams: Sequence[int], seconds: float, seed: int) -> list[Prediction]:
    """Live listeners, each of which requests its next text when the last has been played."""
    return [
        simulate(
            system,
            LoadSpec(kind="live", streams=count, warm_up_s=10.0, seconds=seconds, seed=seed),
        )
        for count in streams
    ]


def scale_table(predictions: Sequence[Prediction]) -> str:
    """One line for each number of listeners."""
    head = ("listeners", "TTFP p50 / p95 / p99, ms", "C0", "C100", "audio-s/s", "refusals")
    lines = []
    for prediction in predictions:
        said = prediction.summary
        if said is None:
            lines.append((str(prediction.spec.streams), *["nothing spoken"] * 5))
            continue
        lines.append(
            (
                str(prediction.spec.streams),
                " / ".join(ms(t) for t in (said.ttfp.p50, said.ttfp.p95, said.ttfp.p99)),
                percent(said.continuous[0]),
                percent(said.continuous[2]),
                f"{said.throughput_x:.1f}",
                str(said.refusals),
            )
        )
    return table(head, lines)
