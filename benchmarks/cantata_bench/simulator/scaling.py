"""How far a system goes: live listeners at a time, and what the last of them hear."""

from __future__ import annotations

from collections.abc import Sequence

from cantata_bench.results import LoadSpec
from cantata_bench.simulator.loads import Prediction, simulate
from cantata_bench.simulator.system import System
from cantata_bench.tables import ms, percent, table

_FIRST_SOUND_S = 0.5


def scale(system: System, streams: Sequence[int], seconds: float, seed: int) -> list[Prediction]:
    """Live listeners, each of which requests its next text when the last has been played."""
    return [
        simulate(
            system,
            LoadSpec(kind="live", streams=count, warm_up_s=10.0, seconds=seconds, seed=seed),
        )
        for count in streams
    ]


def max_listeners(system: System, seconds: float, seed: int) -> Prediction:
    """The largest number of live listeners, in steps of 2%, of whom nobody is rejected, nobody
    hears a gap, and 99 of 100 hear the first sound within half a second."""
    least, most = 1, 2 * system.slots * system.servers
    best = scale(system, [least], seconds, seed)[0]
    while most - least > max(1, least // 50):
        middle = (least + most) // 2
        found = scale(system, [middle], seconds, seed)[0]
        if _satisfies(found):
            least, best = middle, found
        else:
            most = middle
    return best


def replicas_table(system: System, counts: Sequence[int], seconds: float, seed: int) -> str:
    """A table with one line for each number of replicas: how many listeners it serves, against one
    replica's."""
    head = ("replicas", "listeners", "of one replica's, each", "TTFP p50 / p99, ms", "audio-s/s")
    lines, one = [], 0.0
    for count in counts:
        found = max_listeners(system.model_copy(update={"servers": count}), seconds, seed)
        assert found.summary is not None, "somebody listens"
        streams = found.spec.streams
        one = one or streams / count
        ttfp = found.summary.ttfp
        lines.append(
            (
                str(count),
                str(streams),
                percent(streams / count / one),
                f"{ms(ttfp.p50)} / {ms(ttfp.p99)}",
                f"{found.summary.throughput_x:.1f}",
            )
        )
    return table(head, lines)


def _satisfies(found: Prediction) -> bool:
    summary = found.summary
    return (
        summary is not None
        and not summary.refusals
        and summary.continuous[0] == 1.0
        and summary.ttfp.p99 <= _FIRST_SOUND_S
    )


def scale_table(predictions: Sequence[Prediction]) -> str:
    """A table with one line for each number of listeners."""
    head = ("listeners", "TTFP p50 / p95 / p99, ms", "C0", "C100", "audio-s/s", "refusals")
    lines = []
    for prediction in predictions:
        summary = prediction.summary
        if summary is None:
            lines.append((str(prediction.spec.streams), *["nothing spoken"] * 5))
            continue
        lines.append(
            (
                str(prediction.spec.streams),
                " / ".join(ms(t) for t in (summary.ttfp.p50, summary.ttfp.p95, summary.ttfp.p99)),
                percent(summary.continuous[0]),
                percent(summary.continuous[2]),
                f"{summary.throughput_x:.1f}",
                str(summary.refusals),
            )
        )
    return table(head, lines)
