"""Measure whether encoding new recordings disturbs streams that are being listened to.

    python -m cantata_bench.recordings FOLDER [--streams 16] [--seconds 15]

Each stream speaks one text after another in the voice of one recording, which the server has
already encoded, and reads at playback speed. In every other turn, one more client sends new
recordings, each as soon as the last one has been answered. FOLDER is a checkpoint that follows
recordings; it may have random weights.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import io
import time
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from itertools import count
from typing import Any

import httpx
import numpy as np
import soundfile

from cantata_bench.first_packet import TEXT, TIMEOUT_S, serving
from cantata_bench.listener import Listener, heard_at_s, underrun_s
from cantata_bench.tables import table

SAMPLE_RATE = 24_000
FRAMES = 60
"""Frames of a text; 4.8 s."""
NEW_FRAMES = 4
TURNS = 3
TURN_S = 10.0
WARM_UP_S = 3.0
"""Seconds of a turn's warm-up; what begins within it is not counted."""


@dataclass(frozen=True, slots=True)
class TextTimes:
    """Times of one text of one stream."""

    first_s: float
    gap_s: float
    """How long a player without a reserve stalled."""


@dataclass(frozen=True, slots=True)
class RecordedTurn:
    """The texts of one turn, and the times of the new recordings."""

    heard: Sequence[TextTimes]
    answered_s: Sequence[float]
    """Seconds to the first packet of each new recording."""


def recording(seconds: float, seed: int) -> str:
    """A WAV file of noise as a data URL; another one for each seed."""
    noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * SAMPLE_RATE))
    data = io.BytesIO()
    soundfile.write(data, noise.astype(np.float32), SAMPLE_RATE, "PCM_16", format="WAV")
    return "data:audio/wav;base64," + base64.b64encode(data.getvalue()).decode()


async def listen(http: httpx.AsyncClient, frames: int, source: str) -> Listener:
    """Speak a text that continues a recording.

    Raises:
        httpx.HTTPStatusError: it was rejected.
    """
    body: dict[str, Any] = {"input": TEXT, "response_format": "pcm", "temperature": 0}
    body |= {"max_new_tokens": frames + 1, "ref_audio": source, "ref_text": TEXT}
    listener, began = Listener(), time.perf_counter()
    async with http.stream("POST", "/v1/audio/speech", json=body) as answer:
        answer.raise_for_status()
        listener.head(time.perf_counter() - began, SAMPLE_RATE, 1)
        async for data in answer.aiter_raw():
            listener.packet(time.perf_counter() - began, data)
    return listener


async def turn(
    http: httpx.AsyncClient, streams: int, seconds: float, seeds: count[int]
) -> RecordedTurn:
    """Measure one turn.

    Args:
        seconds: of each new recording; 0 sends none.
        seeds: of the new recordings.
    """
    began = time.perf_counter()
    heard: list[TextTimes] = []
    answered_s: list[float] = []

    async def stream(number: int) -> None:
        await asyncio.sleep(WARM_UP_S * number / streams)
        while (sent_s := time.perf_counter() - began) < WARM_UP_S + TURN_S:
            listener = await listen(http, FRAMES, recording(3.0, seed=0))
            arrivals = listener.arrivals
            if sent_s >= WARM_UP_S:
                heard.append(TextTimes(arrivals[0][0], underrun_s(arrivals, 0.0)))
            played_s = began + sent_s + heard_at_s(arrivals)
            await asyncio.sleep(max(0.0, played_s - time.perf_counter()))

    async def newcomers() -> None:
        while seconds:
            source = await asyncio.to_thread(recording, seconds, next(seeds))
            listener = await listen(http, NEW_FRAMES, source)
            answered_s.append(listener.arrivals[0][0])

    sending = asyncio.create_task(newcomers())
    await asyncio.gather(*(stream(number) for number in range(streams)))
    sending.cancel()
    with suppress(asyncio.CancelledError):
        await sending
    return RecordedTurn(heard, answered_s)


async def measure(url: str, streams: int, seconds: float) -> dict[bool, list[RecordedTurn]]:
    """Turns without and with new recordings, in alternation."""
    limits = httpx.Limits(max_connections=streams + 1)
    seeds = count(1)
    turns: dict[bool, list[RecordedTurn]] = {False: [], True: []}
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, limits=limits) as http:
        for _ in range(TURNS):
            for with_new in turns:
                found = await turn(http, streams, seconds if with_new else 0.0, seeds)
                turns[with_new].append(found)
    return turns


def report(turns: dict[bool, list[RecordedTurn]]) -> str:
    """A table."""
    rows = []
    for with_new, parts in turns.items():
        heard = [one for part in parts for one in part.heard]
        answered = [one for part in parts for one in part.answered_s]
        first = np.percentile([one.first_s for one in heard], [50, 95]) * 1000
        rows.append(
            (
                "yes" if with_new else "no",
                str(len(heard)),
                f"{first[0]:.0f} / {first[1]:.0f} ms",
                f"{max(one.gap_s for one in heard) * 1000:.0f} ms",
                f"{100 * np.mean([one.gap_s == 0 for one in heard]):.1f}%",
                str(len(answered)),
                f"{np.median(answered):.2f} s" if answered else "",
            )
        )
    head = (
        "new recordings",
        "texts",
        "TTFP p50 / p95",
        "longest gap",
        "C0",
        "encoded",
        "first packet",
    )
    return table(head, rows)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as `cantata serve --model` takes it")
    parser.add_argument("--streams", type=int, default=16, help="number of streams")
    parser.add_argument("--seconds", type=float, default=15.0, help="length of each new recording")
    given = parser.parse_args()
    with serving(given.model, slots=given.streams + 1) as server:
        print(report(asyncio.run(measure(server.url, given.streams, given.seconds))))


if __name__ == "__main__":
    main()
