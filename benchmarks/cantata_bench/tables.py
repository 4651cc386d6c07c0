"""A run in Markdown."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path

from cantata_bench.goals import goals
from cantata_bench.results import RESERVES_S, BenchRun, LoadResult, ProcessUse, Spread

_MIB = 2**20
BUSY = 0.25
"""Part of the cores: a machine with a higher load than this before a run is not idle."""


def report(run: BenchRun) -> str:
    """Everything, for a page of its own or between the markers of one."""
    return "\n".join(_list_parts(run))


def _list_parts(run: BenchRun) -> Iterator[str]:
    yield _describe_machine(run)
    if run.floor is not None:
        yield _describe_floor(run)
    if run.loads:
        yield _tabulate_latency(run, run.loads)
        yield _tabulate_first_packets(run.loads)
        yield _tabulate_continuity(run.loads)
        yield _use(run.loads)
    if run.batch_mode:
        yield "With `async_chunk: false`:\n\n" + _tabulate_latency(run, run.batch_mode)
    if run.long_text is not None:
        yield _describe_long_text(run)
    yield _tabulate_goals(run)


def table(head: Sequence[str], lines: Iterable[Sequence[str]]) -> str:
    """A Markdown table."""
    rows = [list(head), ["-"] * len(head), *lines]
    return "\n".join(f"| {' | '.join(row)} |" for row in rows) + "\n"


def put_between_markers(path: Path, name: str, text: str) -> None:
    """Replace the text between `<!-- name -->` and `<!-- end of name -->` in a file.

    Raises:
        ValueError: the file lacks one of them.
    """
    begin, end = f"<!-- {name} -->", f"<!-- end of {name} -->"
    whole = path.read_text(encoding="utf-8")
    if begin not in whole or end not in whole:
        raise ValueError(f"{path} needs the lines {begin!r} and {end!r}")
    before, after = whole.split(begin)[0], whole.split(end)[1]
    path.write_text(f"{before}{begin}\n{text}{end}{after}", encoding="utf-8")


def ms(seconds: float) -> str:
    """Milliseconds, with a decimal where it matters."""
    value = 1000 * seconds
    return f"{value:.1f}" if value < 10 else f"{value:.0f}"


def percent(share: float) -> str:
    """A share; 100% only where nothing is missing."""
    text = f"{100 * share:.1f}%"
    return "100%" if share == 1 else "<100%" if text == "100.0%" else text


def _describe_machine(run: BenchRun) -> str:
    machine = run.machine
    quiet = machine.load_average <= BUSY * machine.cores
    state = "" if quiet else f" **It was busy before the run (load {machine.load_average:.1f}).**"
    ready = f" Ready after {run.server_ready_s:.1f} s." if run.server_ready_s else ""
    return (
        f"{run.began}, `{run.model}`, {machine.cores} cores of {machine.cpu}, "
        f"Python {machine.python}.{ready}{state}\n"
    )


def _describe_floor(run: BenchRun) -> str:
    assert run.floor is not None
    first = run.floor.first_packet
    parts = (first.prompt_s, first.first_step_s, first.codec_step_s)
    shown = " + ".join(ms(part) for part in parts)
    lines = [
        (str(b.streams), f"{b.throughput_x:.1f}", f"{b.slowest_stage_x:.1f}")
        for b in run.floor.batches
    ]
    head = ("requests at a time", "bare loop, audio-s/s", "slower stage alone, audio-s/s")
    return (
        f"The bare model's first packet: {ms(first.total_s)} ms "
        f"(prompt, prefill with the first frame, codec: {shown} ms); "
        f"the text's way to the prompt takes another {ms(first.text_s)} ms.\n\n"
        + table(head, lines)
    )


def _tabulate_latency(run: BenchRun, loads: Sequence[LoadResult]) -> str:
    head = (
        "load", "header p50", "TTFP p50 / p95 / p99", "onset p50", "E2E p50", "RTF p50",
        "audio-s/s", "TTFP / bare", "throughput / bare",
    )  # fmt: skip
    lines = []
    for result in loads:
        found = result.summary
        if found is None:
            lines.append((result.spec.title, "nothing spoken", *[""] * (len(head) - 2)))
            continue
        ttfp = " / ".join(ms(t) for t in (found.ttfp.p50, found.ttfp.p95, found.ttfp.p99))
        mark = " (client behind)" if result.client.behind else ""
        mark += " (disturbed)" if result.disturbance else ""
        lines.append(
            (
                result.spec.title + mark,
                ms(found.header.p50),
                ttfp,
                ms(found.onset.p50),
                ms(found.e2e.p50),
                f"{found.rtf.p50:.3f}",
                f"{found.throughput_x:.1f}",
                *_format_ratios(run, result),
            )
        )
    return "Times in ms.\n\n" + table(head, lines)


def _tabulate_first_packets(loads: Sequence[LoadResult]) -> str:
    """Where their time goes, as servers with a Server-Timing tell."""
    steps = {r.spec.title: r.summary.ttfp_steps for r in loads if r.summary}
    names = dict.fromkeys(name for found in steps.values() for name in found)
    if not names:
        return ""
    lines = [
        (title, *(_step(found.get(name)) for name in names))
        for title, found in steps.items()
        if found
    ]
    return "Where first packets' time goes, p50 / p95 in ms.\n\n" + table(("load", *names), lines)


def _step(time: Spread | None) -> str:
    return "" if time is None else f"{ms(time.p50)} / {ms(time.p95)}"


def _format_ratios(run: BenchRun, result: LoadResult) -> tuple[str, str]:
    assert result.summary is not None
    if run.floor is None:
        return "", ""
    ttfp = result.summary.ttfp.p50 / run.floor.first_packet.total_s
    if result.spec.kind != "closed":  # its throughput is set by its requests
        return f"{ttfp:.1f}", ""
    bare = run.floor.batch(result.spec.streams).throughput_x
    return f"{ttfp:.1f}", f"{result.summary.throughput_x / bare:.2f}"


def _tabulate_continuity(loads: Sequence[LoadResult]) -> str:
    reserves = tuple(f"C{1000 * reserve:.0f}" for reserve in RESERVES_S)
    with_wer = any(r.summary and r.summary.wer is not None for r in loads)
    head = (
        "load", "spoken", "failed", "refused", "refusals", *reserves, "longest gap, ms",
        "interval p50 / p99, ms", *(("WER",) if with_wer else ()),
    )  # fmt: skip
    lines = []
    for result in loads:
        found = result.summary
        if found is None:
            continue
        wer = "" if found.wer is None else percent(found.wer)
        lines.append(
            (
                result.spec.title,
                *(str(n) for n in (found.spoken, found.failed, found.refused, found.refusals)),
                *(percent(share) for share in found.continuous),
                ms(found.underrun_max_s),
                f"{ms(found.interval.p50)} / {ms(found.interval.p99)}",
                *((wer,) if with_wer else ()),
            )
        )
    return table(head, lines)


def _use(loads: Sequence[LoadResult]) -> str:
    names = sorted({p.name for result in loads for p in result.processes})
    if not names:
        return ""
    head = ("load", "CPU-s per audio-s", *(f"{name}: CPU s, MiB" for name in names), "client CPU s")
    lines = []
    for result in loads:
        by_name = {process.name: process for process in result.processes}
        cost = result.cpu_per_audio_s
        lines.append(
            (
                result.spec.title,
                "" if cost is None else f"{cost:.4f}",
                *(_process(by_name.get(name)) for name in names),
                f"{result.client.cpu_s:.1f}",
            )
        )
    return table(head, lines)


def _process(use: ProcessUse | None) -> str:
    return "" if use is None else f"{use.cpu_s:.1f}, {use.peak_rss_bytes / _MIB:.0f}"


def _describe_long_text(run: BenchRun) -> str:
    assert run.long_text is not None
    record = run.long_text.record
    before = {p.name: p.peak_rss_bytes for p in run.long_text.processes_before}
    after = {p.name: p.peak_rss_bytes for p in run.long_text.processes_after}
    lines = [
        (name, f"{before.get(name, 0) / _MIB:.1f}", f"{size / _MIB:.1f}")
        for name, size in after.items()
    ]
    return (
        f"One text of {record.audio_s / 60:.1f} minutes: first packet after {ms(record.ttfp_s)} "
        f"ms, made in {record.e2e_s:.0f} s, a player without a reserve stalls for "
        f"{ms(record.underruns_s[0])} ms.\n\n"
        + table(("process", "MiB after one minute of text", "MiB at the end"), lines)
    )


def _tabulate_goals(run: BenchRun) -> str:
    lines = [
        (
            goal.name,
            f"{'at least' if goal.at_least else 'at most'} {goal.limit:g}",
            f"{goal.found:.3g}",
            "not measured" if goal.doubt else "yes" if goal.met else "**no**",
        )
        for goal in goals(run)
    ]
    return table(("goal", "wanted", "found", "met"), lines) if lines else ""
