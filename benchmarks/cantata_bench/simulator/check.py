"""Whether the simulator says what was measured."""

from __future__ import annotations

from dataclasses import dataclass

from cantata_bench.results import BenchRun, LoadResult, LoadSummary
from cantata_bench.simulator.loads import Prediction, simulate
from cantata_bench.simulator.system import build_system
from cantata_bench.tables import ms, percent, table

_HEAD = (
    "load", "TTFP p50, ms", "TTFP p95, ms", "audio-s/s", "C0", "refusals",
)  # fmt: skip


@dataclass(frozen=True, slots=True)
class CheckedLoad:
    """A load as measured and as predicted."""

    measured: LoadResult
    predicted: Prediction

    def error(self, figure: str) -> float | None:
        """Predicted / measured - 1, of "ttfp_p50", "ttfp_p95" or "throughput"."""
        if self.measured.summary is None or self.predicted.summary is None:
            return None
        found, predicted = (
            _read_figure(summary, figure)
            for summary in (self.measured.summary, self.predicted.summary)
        )
        return predicted / found - 1 if found else None


def check(run: BenchRun) -> list[CheckedLoad]:
    """Predict every load of a run from its floor alone, and put both side by side."""
    system = build_system(run)
    return [CheckedLoad(result, simulate(system, result.spec)) for result in run.loads]


def _read_figure(summary: LoadSummary, name: str) -> float:
    return {
        "ttfp_p50": summary.ttfp.p50,
        "ttfp_p95": summary.ttfp.p95,
        "throughput": summary.throughput_x,
    }[name]


def check_table(checked: list[CheckedLoad]) -> str:
    """Each cell: measured / predicted."""
    lines = []
    for one in checked:
        found, predicted = one.measured.summary, one.predicted.summary
        if found is None or predicted is None:
            lines.append((one.measured.spec.title, *["nothing spoken"] * 5))
            continue
        lines.append(
            (
                one.measured.spec.title,
                f"{ms(found.ttfp.p50)} / {ms(predicted.ttfp.p50)}",
                f"{ms(found.ttfp.p95)} / {ms(predicted.ttfp.p95)}",
                f"{found.throughput_x:.1f} / {predicted.throughput_x:.1f}",
                f"{percent(found.continuous[0])} / {percent(predicted.continuous[0])}",
                f"{found.refusals} / {predicted.refusals}",
            )
        )
    return "Measured / predicted.\n\n" + table(_HEAD, lines)
