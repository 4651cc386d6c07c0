"""What is wanted of a run, as ratios, so that it means the same on any machine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass
from itertools import product

from cantata_bench.results import LoadResult, Run


@dataclass(frozen=True, slots=True)
class Goal:
    """One wish, and what was found."""

    name: str
    limit: float
    found: float
    at_least: bool
    """Else at most."""

    @property
    def met(self) -> bool:
        """Whether it is as wanted."""
        return self.met_within(0.0)

    def met_within(self, margin: float) -> bool:
        """Whether it is off by no more than this share of the limit."""
        if self.at_least:
            return self.found >= self.limit * (1 - margin)
        return self.found <= self.limit * (1 + margin)


def goals(run: Run) -> list[Goal]:
    """Every goal that the run has measured."""
    return [*_first_packet(run), *_throughput(run), *_continuity(run), *_cliffs(run), *_costs(run)]


def _at_most(name: str, limit: float, found: float) -> Goal:
    return Goal(name, limit, found, at_least=False)


def _at_least(name: str, limit: float, found: float) -> Goal:
    return Goal(name, limit, found, at_least=True)


def _ttfp_p50_s(result: LoadResult | None) -> float | None:
    return result.summary.ttfp.p50 if result and result.summary else None


def _first_packet(run: Run) -> Iterator[Goal]:
    alone = _ttfp_p50_s(run.load("closed", 1))
    if alone is None:
        return
    if run.floor is not None:
        ratio = alone / run.floor.first_packet.total_s
        yield _at_most("TTFP p50 alone / bare first packet", 2.0, ratio)
    for whole in run.batch_mode:
        streaming = next((load for load in run.loads if load.spec == whole.spec), None)
        if whole.summary and streaming and streaming.summary:
            ttfp = streaming.summary.ttfp.p50 / whole.summary.ttfp.p50
            yield _at_most(f"TTFP p50 streaming / batch mode, {whole.spec.texts}", 0.08, ttfp)
            e2e = streaming.summary.e2e.p50 / whole.summary.e2e.p50
            yield _at_most(f"E2E p50 streaming / batch mode, {whole.spec.texts}", 1.0, e2e)


def _throughput(run: Run) -> Iterator[Goal]:
    for streams in (8, 16):
        result = run.load("closed", streams)
        if run.floor is None or result is None or result.summary is None:
            continue
        bare = run.floor.batch(streams).throughput_x
        share = result.summary.throughput_x / bare
        yield _at_least(f"throughput at {streams} / bare loop", 0.75, share)


def _continuity(run: Run) -> Iterator[Goal]:
    for result in run.loads:
        if result.summary is not None:
            yield _at_least(f"C0, {result.spec.title}", 1.0, result.summary.continuous[0])


def _cliffs(run: Run) -> Iterator[Goal]:
    alone = run.load("closed", 1)
    if alone is None or alone.summary is None:
        return
    for kind, (streams, limit) in product(("live", "closed"), ((16, 4.0), (32, 8.0))):
        crowd = run.load(kind, streams)
        if crowd is not None and crowd.summary is not None:
            ratio = crowd.summary.ttfp.p95 / alone.summary.ttfp.p95
            yield _at_most(f"TTFP p95 at {streams} {kind} / at 1", limit, ratio)


def _costs(run: Run) -> Iterator[Goal]:
    alone, crowd = run.load("closed", 1), run.load("closed", 16)
    if alone and crowd and alone.cpu_per_audio_s and crowd.cpu_per_audio_s:
        ratio = crowd.cpu_per_audio_s / alone.cpu_per_audio_s
        yield _at_most("CPU seconds per second of sound at 16 / at 1", 1.0, ratio)
    if run.long_text is not None and run.long_text.processes_before:
        before = sum(p.peak_rss_bytes for p in run.long_text.processes_before)
        after = sum(p.peak_rss_bytes for p in run.long_text.processes_after)
        yield _at_most("memory after the long text / after a minute", 1.05, after / before)
        yield _at_most(
            "seconds without sound in the long text", 0.0, run.long_text.record.underruns_s[0]
        )
