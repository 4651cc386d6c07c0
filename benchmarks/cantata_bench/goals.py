"""The goals of a run, as ratios, so that they mean the same on any machine."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import product

from cantata_bench.results import STAMPEDE, BenchRun, LoadResult, LongText, ServerlessBaseline

_Measured = LoadResult | ServerlessBaseline | LongText


@dataclass(frozen=True, slots=True)
class Goal:
    """A goal and the measured value."""

    name: str
    limit: float
    found: float
    at_least: bool
    """Else at most."""
    doubt: str = ""
    """What disturbed a measurement that it compares. Empty: nothing, so it counts."""

    @property
    def met(self) -> bool:
        return self.met_within(0.0)

    def met_within(self, margin: float) -> bool:
        """Whether it is off by no more than this share of the limit."""
        if self.at_least:
            return self.found >= self.limit * (1 - margin)
        return self.found <= self.limit * (1 + margin)


def goals(run: BenchRun) -> list[Goal]:
    """Every goal that the run has measured."""
    return [
        *_judge_first_packet(run),
        *_judge_throughput(run),
        *_judge_continuity(run),
        *_judge_cliffs(run),
        *_judge_stampede(run),
        *_judge_costs(run),
    ]


def _require_at_most(name: str, limit: float, found: float, *measured: _Measured) -> Goal:
    return Goal(name, limit, found, at_least=False, doubt=_collect_doubts(measured))


def _require_at_least(name: str, limit: float, found: float, *measured: _Measured) -> Goal:
    return Goal(name, limit, found, at_least=True, doubt=_collect_doubts(measured))


def _collect_doubts(measured: Sequence[_Measured]) -> str:
    """The disturbances of all of these measurements."""
    found: list[str] = []
    for one in measured:
        if isinstance(one, LoadResult):
            name, doubt = one.spec.title, one.doubt
        else:
            name = "the bare model" if isinstance(one, ServerlessBaseline) else "the long text"
            doubt = one.disturbance
        if doubt:
            found.append(f"{name}: {doubt}")
    return "; ".join(found)


def _judge_first_packet(run: BenchRun) -> Iterator[Goal]:
    alone = run.load("closed", 1)
    if alone is None or alone.summary is None:
        return
    if run.floor is not None:
        ratio = alone.summary.ttfp.p50 / run.floor.first_packet.total_s
        yield _require_at_most("TTFP p50 alone / bare first packet", 2.0, ratio, alone, run.floor)
    for whole in run.batch_mode:
        streaming = next((load for load in run.loads if load.spec == whole.spec), None)
        if whole.summary and streaming and streaming.summary:
            ttfp = streaming.summary.ttfp.p50 / whole.summary.ttfp.p50
            name, both = f"p50 streaming / batch mode, {whole.spec.texts}", (streaming, whole)
            yield _require_at_most(f"TTFP {name}", 0.08, ttfp, *both)
            e2e = streaming.summary.e2e.p50 / whole.summary.e2e.p50
            yield _require_at_most(f"E2E {name}", 1.0, e2e, *both)


def _judge_throughput(run: BenchRun) -> Iterator[Goal]:
    for streams in (8, 16):
        result = run.load("closed", streams)
        if run.floor is None or result is None or result.summary is None:
            continue
        bare = run.floor.batch(streams).throughput_x
        share = result.summary.throughput_x / bare
        yield _require_at_least(
            f"throughput at {streams} / bare loop", 0.75, share, result, run.floor
        )


def _judge_continuity(run: BenchRun) -> Iterator[Goal]:
    for result in run.loads:
        if result.summary is not None and not result.spec.is_stampede:
            yield _require_at_least(
                f"C0, {result.spec.title}", 1.0, result.summary.continuous[0], result
            )


def _judge_cliffs(run: BenchRun) -> Iterator[Goal]:
    alone = run.load("closed", 1)
    if alone is None or alone.summary is None:
        return
    for kind, (streams, limit) in product(("live", "closed"), ((16, 4.0), (32, 8.0))):
        crowd = run.load(kind, streams)
        if crowd is not None and crowd.summary is not None:
            ratio = crowd.summary.ttfp.p95 / alone.summary.ttfp.p95
            yield _require_at_most(
                f"TTFP p95 at {streams} {kind} / at 1", limit, ratio, crowd, alone
            )


def _judge_stampede(run: BenchRun) -> Iterator[Goal]:
    """The goals of a stampede, for its admitted requests."""
    for result in run.loads:
        spec, found = result.spec, result.summary
        if not spec.is_stampede or found is None:
            continue
        yield _require_at_least(f"C0, {spec.title}", 0.995, found.continuous[0], result)
        yield _require_at_least(f"C50, {spec.title}", 1.0, found.continuous[1], result)
        kind = "closed" if spec.kind == "closed" else "live"
        room = run.load(kind, spec.streams / STAMPEDE, spec.transport)
        if room is not None and room.summary is not None:
            share = found.throughput_x / room.summary.throughput_x
            name = f"throughput, {spec.title} / {room.spec.title}"
            yield _require_at_least(name, 0.9, share, result, room)


def _judge_costs(run: BenchRun) -> Iterator[Goal]:
    alone, crowd = run.load("closed", 1), run.load("closed", 16)
    if alone and crowd and alone.cpu_per_audio_s and crowd.cpu_per_audio_s:
        ratio = crowd.cpu_per_audio_s / alone.cpu_per_audio_s
        yield _require_at_most(
            "CPU seconds per second of sound at 16 / at 1", 1.0, ratio, crowd, alone
        )
    if run.long_text is not None and run.long_text.processes_before:
        yield from _judge_long_text(run.long_text)


def _judge_long_text(found: LongText) -> Iterator[Goal]:
    before = sum(p.peak_rss_bytes for p in found.processes_before)
    after = sum(p.peak_rss_bytes for p in found.processes_after)
    yield _require_at_most(
        "memory after the long text / after a minute", 1.05, after / before, found
    )
    silence_s = found.record.underruns_s[0]
    yield _require_at_most("seconds without sound in the long text", 0.0, silence_s, found)
