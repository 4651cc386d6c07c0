"""Time the answers of a model, with `async_chunk: true` and with `async_chunk: false`.

    python -m cantata_bench.answers FOLDER [--requests 1 4 10] [--tokens 48] [--dtype float32]

Prints the time from the request to the first text (TTFT), to the first sound (TTFP) and to the
end, and the time between two tokens (ITL). The checkpoint may have random weights if its speech
ends by itself.
"""

from __future__ import annotations

import argparse
import asyncio
import base64
import json
import statistics
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import httpx

from cantata_bench.first_packet import serving
from cantata_bench.tables import table

QUESTION = "Which trains go to the coast in the morning, and where does one change?"
TIMEOUT_S = 600.0
RATE = 24_000
"""Hz, of streamed sound."""
ROUNDS = 3
"""Rounds of each number of requests, after one that is not counted."""


@dataclass(frozen=True, slots=True)
class Answered:
    """Times of one answer, in seconds from its request."""

    first_text_s: float
    text_end_s: float
    first_sound_s: float
    whole_s: float
    pieces: int
    """Number of pieces of text."""
    audio_s: float
    """Sound that arrived."""


async def ask(http: httpx.AsyncClient, tokens: int, seed: int) -> Answered | None:
    """Ask for an answer of at most so many tokens, spoken in the default voice; None: the server
    had no room."""
    body = {
        "messages": [{"role": "user", "content": QUESTION}],
        "modalities": ["text", "audio"],
        "max_completion_tokens": tokens,
        "stream": True,
        "seed": seed,
    }
    began = time.monotonic()
    text_s: list[float] = []
    sound_s: list[float] = []
    size = 0
    async with http.stream("POST", "/v1/chat/completions", json=body) as response:
        if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
            return None
        response.raise_for_status()
        async for line in response.aiter_lines():
            audio = _read_audio(line)
            now_s = time.monotonic() - began
            if audio.get("transcript"):
                text_s.append(now_s)
            if "data" in audio:
                sound_s.append(now_s)
                size += len(base64.b64decode(audio["data"]))
    whole_s = time.monotonic() - began
    return Answered(text_s[0], text_s[-1], sound_s[0], whole_s, len(text_s), size / 2 / RATE)


def _read_audio(line: str) -> dict[str, Any]:
    """The sound and its transcript in one server-sent event."""
    if not line.startswith("data: {"):
        return {}
    choices = json.loads(line.removeprefix("data: ")).get("choices") or [{}]
    found: dict[str, Any] = choices[0].get("delta", {}).get("audio") or {}
    return found


async def ask_rounds(url: str, requests: int, tokens: int) -> list[list[Answered | None]]:
    """Several rounds of this many requests at once, after an uncounted warm-up."""
    limits = httpx.Limits(max_connections=requests)
    async with httpx.AsyncClient(base_url=url, timeout=TIMEOUT_S, limits=limits) as http:
        rounds = [
            await asyncio.gather(*(ask(http, tokens, seed) for seed in range(requests)))
            for _ in range(1 + ROUNDS)
        ]
    return rounds[1:]


def build_row(rounds: list[list[Answered | None]], *, async_chunk: bool) -> tuple[str, ...]:
    """A line of the table: medians over all requests."""
    answered = [[one for one in found if one is not None] for found in rounds]
    answers = [one for found in answered for one in found]
    between = [(a.text_end_s - a.first_text_s) / max(a.pieces - 1, 1) for a in answers]
    audio_per_s = [
        sum(a.audio_s for a in found) / max(a.whole_s for a in found) for found in answered
    ]
    return (
        str(async_chunk).lower(),
        str(len(rounds[0])),
        str(sum(map(len, rounds)) - len(answers)),
        f"{1000 * statistics.median(a.first_text_s for a in answers):.0f} ms",
        f"{1000 * statistics.median(between):.1f} ms",
        f"{1000 * statistics.median(a.first_sound_s for a in answers):.0f} ms",
        f"{sum(a.first_sound_s < a.text_end_s for a in answers)} of {len(answers)}",
        f"{statistics.median(a.whole_s for a in answers):.2f} s",
        f"{statistics.median(audio_per_s):.1f}",
    )


def measure_all(
    model: str, requests: list[int], tokens: int, dtype: str
) -> Iterator[tuple[str, ...]]:
    """A server with each kind of edges, one after the other; lines as they are measured."""
    for async_chunk in (True, False):
        with serving(model, slots=max(requests), async_chunk=async_chunk, dtype=dtype) as server:
            for count in requests:
                rounds = asyncio.run(ask_rounds(server.url, count, tokens))
                yield build_row(rounds, async_chunk=async_chunk)


def main() -> None:
    """Print a table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("model", help="as `cantata serve --model` takes it")
    parser.add_argument(
        "--requests", type=int, nargs="+", default=[1, 4, 10], help="numbers of requests at a time"
    )
    parser.add_argument("--tokens", type=int, default=48, help="most tokens of an answer")
    parser.add_argument("--dtype", default="float32", choices=("float32", "bfloat16"))
    given = parser.parse_args()
    head = (
        "async_chunk",
        "requests",
        "refused",
        "TTFT p50",
        "ITL",
        "TTFP p50",
        "sound before the text's end",
    )
    print(table((*head, "whole p50", "audio-s/s"), ()), end="")
    for row in measure_all(given.model, given.requests, given.tokens, given.dtype):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
