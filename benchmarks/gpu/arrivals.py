"""Loads on one server as the published marks have them: sampled, Poisson arrivals of a fixed seed,
then as many streams as there are in a closed loop."""

from __future__ import annotations

import asyncio
import random
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path

import httpx
import numpy as np

from cantata_bench.first_packet import TEXT, TIMEOUT_S
from cantata_bench.listener import Listener, underrun_s
from gpu.closed_loop import served

RATES, TINY_RATES = (1.0, 6.0, 10.0, 20.0), (2.0,)
"""Requests per second."""
STREAMS, TINY_STREAMS = 64, 2
"""Of the closed loop."""
FRAMES, TINY_FRAMES = 54, 8
"""Of an utterance: the mean of the public load. Random weights seldom end one by themselves."""
WARM_UP_S, SECONDS, TINY_SECONDS = 10.0, 45.0, 2.0
"""Requests that are sent in the warm-up are not counted."""
SEED = 0


@dataclass(frozen=True, slots=True)
class OpenRow:
    """One load."""

    load: str
    sent: int
    """Counted requests, as the next two."""
    spoken: int
    refused: int
    ttfp_p50_ms: float | None
    """Milliseconds from the request to the first sound; None: nothing was spoken."""
    ttfp_p95_ms: float | None
    underruns: int
    """Streams during which a player without a reserve would have stalled."""
    audio_s_per_s: float
    """Of all counted streams together, until the last of them ended."""
    seed: int = SEED


@dataclass(frozen=True, slots=True)
class _TimedAnswer:
    arrivals: list[tuple[float, float]]
    """Seconds since the request, and of sound. Empty: refused."""


def serve_and_measure(checkpoint: Path, device: str, tiny: bool, engine: str) -> Iterator[OpenRow]:
    """As `open_loop.measure`; the server's log stays beside the checkpoint."""
    rates, streams, seconds = (
        (TINY_RATES, TINY_STREAMS, TINY_SECONDS) if tiny else (RATES, STREAMS, SECONDS)
    )
    frames, warm_up_s = (TINY_FRAMES, 0.0) if tiny else (FRAMES, WARM_UP_S)
    with served(checkpoint, device, streams, engine) as url:
        for rate in rates:
            yield asyncio.run(_open_load(url, rate, frames, warm_up_s, seconds))
        yield asyncio.run(_closed_load(url, streams, frames, warm_up_s, seconds))


def arrival_times(rate: float, end_s: float, seed: int) -> list[float]:
    """Poisson arrivals of this many per second, up to `end_s`."""
    dice, times, due_s = random.Random(seed), list[float](), 0.0
    while (due_s := due_s + dice.expovariate(rate)) < end_s:
        times.append(due_s)
    return times


async def _open_load(
    url: str, rate: float, frames: int, warm_up_s: float, seconds: float
) -> OpenRow:
    answers: list[_TimedAnswer] = []
    async with _client(url) as http:
        began = time.perf_counter()

        async def visit(due_s: float, seed: int) -> None:
            await asyncio.sleep(max(0.0, due_s - (time.perf_counter() - began)))
            answer = await _hear(http, frames, seed)
            if due_s >= warm_up_s:
                answers.append(answer)

        times = arrival_times(rate, warm_up_s + seconds, SEED)
        await asyncio.gather(*(visit(due_s, seed) for seed, due_s in enumerate(times)))
        wall_s = time.perf_counter() - began - warm_up_s
    return _summary(f"open {rate:g}/s", answers, wall_s)


async def _closed_load(
    url: str, streams: int, frames: int, warm_up_s: float, seconds: float
) -> OpenRow:
    answers: list[_TimedAnswer] = []
    async with _client(url) as http:
        began = time.perf_counter()

        async def stream(number: int) -> None:
            while (sent_s := time.perf_counter() - began) < warm_up_s + seconds:
                answer = await _hear(http, frames, number)
                if sent_s >= warm_up_s:
                    answers.append(answer)

        await asyncio.gather(*(stream(number) for number in range(streams)))
        wall_s = time.perf_counter() - began - warm_up_s
    return _summary(f"closed {streams}", answers, wall_s)


def _client(url: str) -> httpx.AsyncClient:
    return httpx.AsyncClient(
        base_url=url, timeout=TIMEOUT_S, limits=httpx.Limits(max_connections=None)
    )


async def _hear(http: httpx.AsyncClient, frames: int, seed: int) -> _TimedAnswer:
    """One request of this many frames, sampled as the model's defaults say."""
    body = {"input": TEXT, "response_format": "pcm", "seed": seed, "max_new_tokens": frames + 1}
    began, listener = time.perf_counter(), Listener()
    async with http.stream("POST", "/v1/audio/speech", json=body) as response:
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return _TimedAnswer([])
        response.raise_for_status()
        rate = int(response.headers["x-sample-rate"])
        channels = int(response.headers.get("x-channels", 1))
        listener.head(time.perf_counter() - began, rate, channels)
        async for data in response.aiter_raw():
            listener.packet(time.perf_counter() - began, data)
    return _TimedAnswer(listener.arrivals)


def _summary(load: str, answers: list[_TimedAnswer], wall_s: float) -> OpenRow:
    spoken = [answer.arrivals for answer in answers if answer.arrivals]
    first_ms = [1000 * arrivals[0][0] for arrivals in spoken]
    return OpenRow(
        load=load,
        sent=len(answers),
        spoken=len(spoken),
        refused=len(answers) - len(spoken),
        ttfp_p50_ms=statistics.median(first_ms) if first_ms else None,
        ttfp_p95_ms=float(np.percentile(first_ms, 95)) if first_ms else None,
        underruns=sum(underrun_s(arrivals, 0.0) > 0 for arrivals in spoken),
        audio_s_per_s=sum(audio_s for arrivals in spoken for _, audio_s in arrivals) / wall_s,
    )
