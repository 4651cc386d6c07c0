"""Ten minutes of text in one request: whether playing it stands still, and what memory it takes."""

from __future__ import annotations

import asyncio
import random
from pathlib import Path
from typing import Annotated

import httpx
import typer
from rich.console import Console
from rich.table import Table

from benchmarks.load import UtteranceTiming, closed_loop
from benchmarks.server import memory_of, running_server

CHARACTERS_PER_MINUTE = 900
_SUBJECTS = ("The old ferry", "My neighbour", "A grey cat", "The first train", "Nobody here")
_VERBS = ("waited for", "remembered", "carried", "never mentioned", "turned away from")
_OBJECTS = ("the harbour lights", "a box of letters", "the winter market", "two green bottles")
_ENDS = ("before noon", "in the heavy rain", "for 3 hours", "with a small sigh", "and went home")


def varied_text(minutes: float, seed: int) -> str:
    """Sentences that take about so long to say."""
    dice = random.Random(seed)
    sentences: list[str] = []
    length = 0
    while length < minutes * CHARACTERS_PER_MINUTE:
        parts = (dice.choice(words) for words in (_SUBJECTS, _VERBS, _OBJECTS, _ENDS))
        sentences.append(" ".join(parts) + dice.choice((".", ".", "!", "?")))
        length += len(sentences[-1]) + 1
    return " ".join(sentences)


def main(
    streams: Annotated[int, typer.Option(help="Texts spoken at once.")] = 1,
    minutes: Annotated[float, typer.Option(help="Length of each text.")] = 10.0,
    log: Annotated[Path, typer.Option(help="The server's output.")] = Path(
        "artifacts/long-text-server.log"
    ),
) -> None:
    """Start a server, speak one minute, then the long text, and compare."""
    console = Console()
    with running_server(log) as server:
        voices = [v["id"] for v in httpx.get(f"{server.url}/v1/audio/voices").json()["voices"]]

        def speak(length_min: float) -> list[UtteranceTiming]:
            texts = [varied_text(length_min, seed) for seed in range(streams)]
            return asyncio.run(closed_loop(server.url, texts, streams, 1, voices))

        speak(1.0)
        before = memory_of(server)
        timings = speak(minutes)
        after = memory_of(server)
        stages = httpx.get(f"{server.url}/health").json()["stages"]
    for timing in timings:
        console.print(
            f"{timing.audio_s:.0f} s of sound in {timing.total_s:.0f} s, "
            f"first after {timing.ttfp_s * 1000:.0f} ms, "
            f"played without a reserve it stands still for {timing.underrun_s * 1000:.0f} ms"
        )
    table = Table(title="Memory")
    for column in ("process", "after one minute", "at the end"):
        table.add_column(column, justify="right")
    for process, bytes_before in before.items():
        row = (f"{size / 2**20:.1f} MiB" for size in (bytes_before, after[process]))
        table.add_row(process, *row)
    console.print(table)
    held = sum(count for stage in stages for count in stage["counts"].values())
    console.print(f"still held by the stages: {held}")


if __name__ == "__main__":
    typer.run(main)
