"""A model's figures in Markdown."""

from __future__ import annotations

from collections.abc import Iterator

from cantata_bench.machine import API, describe_machine
from cantata_bench.model_page.measure import CheckpointFigures, LoadRow
from cantata_bench.tables import table

GOAL = 0.75
"""The least of the bare stages' throughput that a server shall have."""
_MIB = 2**20


def page_text(found: list[CheckpointFigures]) -> str:
    """All checkpoints, for a page or between its markers."""
    machine = describe_machine()
    head = f"{machine.cores} cores of {machine.cpu}, Python {machine.python}.\n"
    return "\n".join([head, *(part for one in found for part in _list_parts(one))])


def _list_parts(found: CheckpointFigures) -> Iterator[str]:
    settings = found.settings
    what = f"{settings.steps} steps" if found.draws else f"at most {settings.frames} frames"
    yield (
        f"`{found.model}` ({found.what}), {settings.dtype}, {what}, "
        f"{settings.rounds} rounds of each number:\n"
    )
    yield _format_times(found)
    verdict = f"{_judge(found)}.{_explain_misses(found)}"
    yield f"Of the bare stages' throughput the goal is {GOAL:.0%}: {verdict}\n"
    yield "Private memory by slots, in MiB:\n"
    yield _format_memory(found)


def _format_times(found: CheckpointFigures) -> str:
    sound = ("streams", "TTFP p50", "worst", "whole p50", "RTF p50", "audio-s/s")
    drawn = ("pictures", "first step p50", "worst", "whole p50", "pictures a minute")
    head = (*(drawn if found.draws else sound), "bare", "served / bare")
    return table(head, [_format_row(row, draws=found.draws) for row in found.rows])


def _format_row(row: LoadRow, *, draws: bool) -> tuple[str, ...]:
    served, bare = row.served, row.bare
    mark = " (disturbed)" if row.disturbance else ""
    mark += f" ({served.refused} rejected)" if served.refused else ""
    times = [f"{s:.3f} s" for s in (served.first_p50_s, served.first_max_s)]
    times.append(f"{served.whole_p50_s:.2f} s")
    if draws:
        rates = [f"{60 * one.per_second:.0f}" for one in (served, bare)]
    else:
        times.append(f"{served.rtf_p50:.2f}")
        rates = [f"{one.per_second:.1f}" for one in (served, bare)]
    return (f"{row.at_once}{mark}", *times, *rates, f"{row.share:.2f}")


def _judge(found: CheckpointFigures) -> str:
    missed = [str(row.at_once) for row in _list_missed(found)]
    doubtful = [str(row.at_once) for row in found.rows if row.disturbance]
    parts = [f"missed at {', '.join(missed)}"] if missed else []
    parts += [f"not measured at {', '.join(doubtful)}"] if doubtful else []
    return "; ".join(parts) or "met"


def _list_missed(found: CheckpointFigures) -> list[LoadRow]:
    return [row for row in found.rows if row.share < GOAL and not row.disturbance]


def _explain_misses(found: CheckpointFigures) -> str:
    """Where it was missed because so many streams cannot play in real time."""
    slow = [row for row in _list_missed(found) if row.bare.per_second < row.at_once]
    if found.draws or not slow:
        return ""
    numbers = " and ".join(str(row.at_once) for row in slow)
    return (
        f" {numbers} streams would need as many seconds of sound per second, which the bare stages "
        "do not make here: admission lets only as many play at a time as never pause."
    )


def _format_memory(found: CheckpointFigures) -> str:
    """A column for the api, the fork server and each stage."""
    private = [{_shorten(name): size for name, size in row.private.items()} for row in found.rows]
    names = [name for name in dict.fromkeys(name for row in private for name in row) if name]
    lines = [
        (str(row.at_once), *(f"{sizes.get(name, 0) / _MIB:.0f}" for name in names))
        for row, sizes in zip(found.rows, private, strict=True)
    ]
    return table(("slots", *names), lines)


def _shorten(process: str) -> str:
    """A process's name without what all have; empty for Python's own helpers."""
    if process == API:
        return process
    return process.removeprefix("cantata:").removesuffix(":0") if ":" in process else ""
