"""`make bench`: TTFP, RTF, continuity, start-up and memory of a server on this machine."""

from __future__ import annotations

import asyncio
import json
import statistics
import time
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.load import UtteranceTiming, closed_loop
from benchmarks.server import RunningServer, memory_of, running_server, stage_gauges

TEXTS = (
    "The morning train was late again, so we walked along the river instead.",
    "Could you tell me where the nearest library is?",
    "She opened the letter, read it twice, and put it back on the table.",
    "Please leave the keys with the neighbour before you go.",
    "A cold wind came down from the hills and rattled the windows all night.",
    "Nothing in the garden had been touched since the summer.",
    "We bought bread, cheese, two apples and a bottle of water.",
    "I am not sure that this is the right answer, but it is a good question.",
)


@dataclass(frozen=True, slots=True)
class LoadResult:
    """One load level."""

    streams: int
    utterances: int
    ttfp_p50_ms: float
    ttfp_p95_ms: float
    rtf_mean: float
    throughput_x: float
    """Seconds of sound made per second, all streams together."""
    continuous_percent: float
    """Utterances that a player with no reserve plays without a gap (C0)."""


def measure(url: str, voices: list[str], streams: int, rounds: int) -> LoadResult:
    """One closed-loop run at one load level."""
    started = time.perf_counter()
    timings = asyncio.run(closed_loop(url, TEXTS, streams, rounds, voices))
    return summarise(timings, streams, time.perf_counter() - started)


def summarise(timings: list[UtteranceTiming], streams: int, wall_s: float) -> LoadResult:
    """Percentiles and rates of one run."""
    ttfp_ms = sorted(1000 * timing.ttfp_s for timing in timings)
    return LoadResult(
        streams=streams,
        utterances=len(timings),
        ttfp_p50_ms=statistics.median(ttfp_ms),
        ttfp_p95_ms=ttfp_ms[min(len(ttfp_ms) - 1, int(0.95 * len(ttfp_ms)))],
        rtf_mean=statistics.fmean(timing.rtf for timing in timings),
        throughput_x=sum(timing.audio_s for timing in timings) / wall_s,
        continuous_percent=100 * statistics.fmean(not timing.underrun_s for timing in timings),
    )


def main(
    streams: Annotated[list[int], typer.Option(help="Load levels.")] = [1, 8],  # noqa: B006
    rounds: Annotated[int, typer.Option(help="Texts per stream.")] = 8,
    output: Annotated[Path, typer.Option(help="Results as JSON.")] = Path("artifacts/bench.json"),
) -> None:
    """Start a server, warm it up, load it, report."""
    console = Console()
    with running_server(output.parent / "bench-server.log") as server:
        voices = [v["id"] for v in httpx.get(f"{server.url}/v1/audio/voices").json()["voices"]]
        measure(server.url, voices, streams=max(streams), rounds=1)
        results = [measure(server.url, voices, n, rounds) for n in streams]
        memory = memory_of(server)
        startup = stage_gauges(server.url, "cantata_stage_startup_seconds")
        console.print(_table(results))
        console.print(_processes(server, memory, startup))
    report = {
        "startup_s": server.startup_s,
        "stage_startup_s": startup,
        "rss_bytes": memory,
        "loads": [asdict(result) for result in results],
    }
    output.write_text(json.dumps(report, indent=2), encoding="utf-8")
    console.print(f"written to {output}")


def _table(results: list[LoadResult]) -> Table:
    table = Table(title="Closed loop over the WebSocket")
    for column in ("streams", "TTFP p50", "TTFP p95", "RTF", "audio-s/s", "C0"):
        table.add_column(column, justify="right")
    for r in results:
        table.add_row(
            str(r.streams),
            f"{r.ttfp_p50_ms:.0f} ms",
            f"{r.ttfp_p95_ms:.0f} ms",
            f"{r.rtf_mean:.3f}",
            f"{r.throughput_x:.1f}",
            f"{r.continuous_percent:.0f}%",
        )
    return table


def _processes(server: RunningServer, memory: dict[str, float], startup: dict[str, float]) -> Table:
    table = Table(title=f"Ready after {server.startup_s:.1f} s")
    for column in ("process", "ready after", "memory"):
        table.add_column(column, justify="right")
    for process, rss_bytes in memory.items():
        ready_s = startup.get(process, server.startup_s)
        table.add_row(process, f"{ready_s:.1f} s", f"{rss_bytes / 2**20:.0f} MiB")
    return table


if __name__ == "__main__":
    typer.run(main)
