"""A run as a picture; needs the extra `bench` (matplotlib)."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cantata_bench.results import BenchRun, LoadResult

_STREAMING, _BARE, _LIMIT = "#1b6ca8", "#8a8f98", "#c8553d"


def can_plot() -> bool:
    """Whether matplotlib is installed."""
    return find_spec("matplotlib") is not None


def plot(run: BenchRun, path: Path) -> None:
    """Latency, throughput, continuity and cost over the number of streams, as one PNG."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(2, 2, figsize=(10, 7), layout="constrained")
    loads = [r for r in run.loads if r.spec.kind == "closed" and r.summary]
    transport = loads[0].spec.transport if loads else "websocket"
    loads = [r for r in loads if r.spec.transport == transport]
    _plot_latency(axes[0][0], run, loads)
    _plot_throughput(axes[0][1], run, loads)
    _plot_continuity(axes[1][0], [r for r in run.loads if r.summary])
    _plot_cost(axes[1][1], loads)
    figure.suptitle(f"{run.model} on {run.machine.cores} cores, {transport}")
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def _set_up_streams(axis: Any, title: str, loads: list[LoadResult]) -> list[int]:
    streams = [result.spec.streams for result in loads]
    axis.set_title(title, loc="left", fontsize=10)
    axis.set_xlabel("streams at a time (closed loop)")
    axis.set_xscale("log", base=2)
    axis.set_xticks(streams, [str(count) for count in streams])
    axis.grid(visible=True, alpha=0.3)
    return streams


def _plot_latency(axis: Any, run: BenchRun, loads: list[LoadResult]) -> None:
    streams = _set_up_streams(axis, "first packet, ms", loads)
    for share, style in (("p50", "-"), ("p95", "--"), ("p99", ":")):
        values = [1000 * getattr(r.summary.ttfp, share) for r in loads if r.summary]
        axis.plot(streams, values, style, marker="o", color=_STREAMING, label=share)
    if run.floor is not None:
        bare_ms = 1000 * run.floor.first_packet.total_s
        axis.axhline(bare_ms, color=_BARE, label="bare model, alone")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8)


def _plot_throughput(axis: Any, run: BenchRun, loads: list[LoadResult]) -> None:
    streams = _set_up_streams(axis, "seconds of sound per second", loads)
    values = [r.summary.throughput_x for r in loads if r.summary]
    axis.plot(streams, values, marker="o", color=_STREAMING, label="served")
    if run.floor is not None:
        batches = run.floor.batches
        counts, bare = [b.streams for b in batches], [b.throughput_x for b in batches]
        axis.plot(counts, bare, marker="s", color=_BARE, label="bare loop, one process")
    axis.set_ylim(bottom=0)
    axis.legend(fontsize=8)


def _plot_continuity(axis: Any, loads: list[LoadResult]) -> None:
    axis.set_title("streams that never run dry (C0), %", loc="left", fontsize=10)
    names = [r.spec.title for r in loads]
    shares = [100 * r.summary.continuous[0] for r in loads if r.summary]
    colours = [_STREAMING if share == 100 else _LIMIT for share in shares]
    axis.barh(names, shares, color=colours)
    axis.invert_yaxis()
    axis.tick_params(axis="y", labelsize=7)
    axis.set_xlim(0, 100)


def _plot_cost(axis: Any, loads: list[LoadResult]) -> None:
    counted = [r for r in loads if r.cpu_per_audio_s]
    streams = _set_up_streams(axis, "CPU seconds per second of sound", counted)
    names = sorted({p.name for r in counted for p in r.processes})
    bottom = [0.0] * len(counted)
    for name in names:
        shares = [sum(p.cpu_s for p in r.processes if p.name == name) / r.audio_s for r in counted]
        widths = [0.35 * count for count in streams]
        axis.bar(streams, shares, width=widths, bottom=bottom, label=name)
        bottom = [b + s for b, s in zip(bottom, shares, strict=True)]
    if names:
        axis.legend(fontsize=7)
