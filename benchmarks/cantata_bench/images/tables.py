"""Figures of pictures in Markdown."""

from __future__ import annotations

import statistics
from collections.abc import Iterator

from cantata_bench.images.measure import ImageFigures
from cantata_bench.images.simulated import (
    Waited,
    arrivals,
    by_plan,
    first_come,
    published_cost,
    simulate,
)
from cantata_bench.tables import table

UTILIZATIONS = (0.5, 0.8, 0.95)
PICTURES, SEED = 400, 0


def images_table(found: ImageFigures) -> str:
    """The measured figures, and the simulated ones at the published size."""
    width, height = found.size
    head = f"{found.model}, {width}x{height}, {found.steps} steps"
    return (
        f"{head}\n\n"
        + table(("", "here", "diffusers", "ratio", "goal"), _list_compared(found))
        + "\n"
        + table(("", "", "goal"), _list_others(found))
        + "\n"
        + simulated_table()
    )


def _list_compared(found: ImageFigures) -> Iterator[tuple[str, ...]]:
    alone, mixed = found.alone, found.mixed
    ours_s, theirs_s = statistics.median(alone.ours_s), statistics.median(alone.theirs_s)
    yield (
        "one picture",
        _format_s(ours_s),
        _format_s(theirs_s),
        f"{alone.ratio:.2f}",
        "at most 1.05",
    )
    ours, theirs = (
        60 * mixed.pictures / statistics.median(s) for s in (mixed.ours_s, mixed.theirs_s)
    )
    what = f"{mixed.pictures} mixed pictures at once, pictures a minute"
    yield what, f"{ours:.0f}", f"{theirs:.0f}", f"{mixed.speed:.2f}", "at least 1.3"
    means = (statistics.median(s) for s in (mixed.ours_mean_s, mixed.theirs_mean_s))
    yield (
        "their mean latency",
        *(_format_s(mean) for mean in means),
        f"{mixed.latency:.2f}",
        "below 1",
    )


def _list_others(found: ImageFigures) -> Iterator[tuple[str, ...]]:
    yield "largest difference of a pixel from diffusers'", str(found.alone.largest_difference), ""
    worst = max(found.cancelled, key=lambda one: one.freed_s / one.step_s)
    freed = f"{1000 * worst.freed_s:.0f} ms; a step: {1000 * worst.step_s:.0f} ms"
    yield "a caller leaves: until nothing is held, at worst", freed, "one step"
    if found.speech is not None:
        for name, summary in (
            ("speech alone", found.speech.without),
            (f"speech beside {found.speech.pictures} pictures", found.speech.beside),
        ):
            ttfp = (
                f"TTFP p50 / p95 {1000 * summary.ttfp.p50:.0f} / {1000 * summary.ttfp.p95:.0f} ms"
            )
            yield name, f"C0 {100 * summary.continuous[0]:.1f}%, {ttfp}", "C0 100%"


def simulated_table() -> str:
    """Qwen-Image of published size on one H200."""
    cost = published_cost()
    head = ("GPU busy", "mean latency", "first come, first served", "ratio", "p95", "first come")
    lines = []
    for utilization in UTILIZATIONS:
        jobs = arrivals(cost, utilization, PICTURES, SEED)
        ours: Waited = simulate(jobs, cost, by_plan)
        theirs: Waited = simulate(jobs, cost, first_come)
        lines.append(
            (
                f"{utilization:.0%}",
                _format_s(ours.mean_s),
                _format_s(theirs.mean_s),
                f"{ours.mean_s / theirs.mean_s:.2f}",
                _format_s(ours.p95_s),
                _format_s(theirs.p95_s),
            )
        )
    return "Simulated: Qwen-Image of published size on one H200.\n\n" + table(head, lines)


def _format_s(seconds: float) -> str:
    return f"{seconds:.2f} s" if seconds < 10 else f"{seconds:.0f} s"
