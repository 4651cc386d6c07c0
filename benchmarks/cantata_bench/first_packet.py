"""Time the first packet, with `async_chunk: true` and with `async_chunk: false`.

    python -m cantata_bench.first_packet FOLDER [--streams 1 4 10] [--frames 60] [--dtype float32]

The checkpoint may have random weights: utterances end at a fixed length.
"""

from __future__ import annotations

import argparse
import asyncio
import statistics
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path

import httpx
import yaml

from cantata.config.plugins import locate
from cantata_bench.server import RunningServer, running_server
from cantata_bench.tables import table

TEXT = "The train to the coast leaves at nine, and the next one at noon."
TIMEOUT_S = 300.0
OPENAI_RATE = 24_000
"""Hz, of `pcm` from a server that does not say."""
ROUNDS = 3
"""Rounds of each number of streams, after one that is not counted."""


@dataclass(frozen=True, slots=True)
class StreamTimes:
    """Times of one stream."""

    first_s: float | None
    """Seconds from the request to the first samples; None: rejected with 429."""
    whole_s: float
    audio_s: float
    """Sound that arrived."""


@dataclass(frozen=True, slots=True)
class StreamsRow:
    """Some streams at a time."""

    async_chunk: bool
    streams: int
    refused: int
    first_p50_s: float
    first_max_s: float
    whole_p50_s: float
    rtf_p50: float
    """Median real-time factor of the streams."""
    throughput_x: float
    """Seconds of sound per second, all streams together, in the median round."""


async def hear(http: httpx.AsyncClient, frames: int) -> StreamTimes:
    """Speak a text of this many frames, if the model supports it."""
    # Greedy: a model of random weights that samples draws the end code now and then.
    choice = {"temperature": 0, "max_new_tokens": frames + 1}
    body = {"input": TEXT, "response_format": "pcm", **choice}
    began, first, size = time.monotonic(), None, 0
    async with http.stream("POST", "/v1/audio/speech", json=body) as response:
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return StreamTimes(None, time.monotonic() - began, 0.0)
        response.raise_for_status()
        rate = int(response.headers.get("x-sample-rate", OPENAI_RATE))
        frame_bytes = 2 * int(response.headers.get("x-channels", 1))
        async for data in response.aiter_raw():
            first = first or time.monotonic() - began
            size += len(data)
    return StreamTimes(first, time.monotonic() - began, size / frame_bytes / rate)


async def hear_rounds(url: str, streams: int, frames: int) -> list[list[StreamTimes]]:
    """Several rounds of this many streams at once, after an uncounted warm-up."""
    limits = httpx.Limits(max_connections=streams)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, limits=limits) as http:
        rounds = [
            await asyncio.gather(*(hear(http, frames) for _ in range(streams)))
            for _ in range(1 + ROUNDS)
        ]
    return rounds[1:]


def summarize(rounds: list[list[StreamTimes]], async_chunk: bool) -> StreamsRow:
    """A line of the table."""
    received = [one for found in rounds for one in found]
    spoken = [one for one in received if one.first_s is not None]
    first = [one.first_s for one in spoken if one.first_s is not None] or [float("nan")]
    whole = [one.whole_s for one in spoken] or [float("nan")]
    rtf = [one.whole_s / one.audio_s for one in spoken] or [float("nan")]
    throughput = (
        sum(one.audio_s for one in found) / max(one.whole_s for one in found) for found in rounds
    )
    return StreamsRow(
        async_chunk,
        len(rounds[0]),
        refused=len(received) - len(spoken),
        first_p50_s=statistics.median(first),
        first_max_s=max(first),
        whole_p50_s=statistics.median(whole),
        rtf_p50=statistics.median(rtf),
        throughput_x=statistics.median(throughput),
    )


def deployment_file(model: str, folder: Path, *, slots: int, async_chunk: bool = True) -> Path:
    """A model's own deployment with this many slots in every stage, written into a folder."""
    raw = yaml.safe_load(locate(model).plugin.deployment.read_text(encoding="utf-8"))
    stages = {name: {**stage, "slots": slots} for name, stage in raw["stages"].items()}
    settings = {**raw, "async_chunk": async_chunk, "stages": stages}
    deploy = folder / "deploy.yaml"
    deploy.write_text(yaml.safe_dump(settings), encoding="utf-8")
    return deploy


@contextmanager
def serving(
    model: str, *, slots: int, async_chunk: bool = True, dtype: str = "float32"
) -> Iterator[RunningServer]:
    """A server that runs for the duration of the block, with this many slots."""
    with tempfile.TemporaryDirectory() as folder:
        deploy = deployment_file(model, Path(folder), slots=slots, async_chunk=async_chunk)
        options = ["--model", model, "--deploy", str(deploy), "--dtype", dtype]
        with running_server(Path(folder) / "log", options=options) as server:
            yield server


def measure_all(model: str, streams: list[int], frames: int, dtype: str) -> Iterator[StreamsRow]:
    """A server with each kind of edges, one after the other; rows as they are measured."""
    for async_chunk in (True, False):
        with serving(model, slots=max(streams), async_chunk=async_chunk, dtype=dtype) as server:
            for count in streams:
                rounds = asyncio.run(hear_rounds(server.url, count, frames))
                yield summarize(rounds, async_chunk)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as `cantata serve --model` takes it")
    parser.add_argument(
        "--streams", type=int, nargs="+", default=[1, 4, 10], help="numbers of streams at a time"
    )
    parser.add_argument("--frames", type=int, default=60, help="length of an utterance")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    given = parser.parse_args()
    head = ("async_chunk", "streams", "refused", "TTFP p50", "TTFP max", "whole p50", "RTF p50")
    print(table((*head, "audio-s/s"), ()), end="")
    for row in measure_all(given.model, given.streams, given.frames, given.dtype):
        print(
            f"| {str(row.async_chunk).lower()} | {row.streams} | {row.refused} | "
            f"{row.first_p50_s:.3f} s | {row.first_max_s:.3f} s | {row.whole_p50_s:.2f} s | "
            f"{row.rtf_p50:.2f} | {row.throughput_x:.1f} |",
            flush=True,
        )


if __name__ == "__main__":
    main()
