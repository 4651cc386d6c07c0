"""Closed-loop load over the WebSocket: N streams, each speaks its next text when one is done."""

from __future__ import annotations

import asyncio
import json
import time
from collections.abc import Sequence
from dataclasses import dataclass

from websockets.asyncio.client import ClientConnection, connect

BYTES_PER_SAMPLE = 2


@dataclass(frozen=True, slots=True)
class UtteranceTiming:
    """One utterance as its listener saw it, in seconds from the moment its text was sent."""

    ttfp_s: float
    """First packet of sound."""
    total_s: float
    """Last packet of sound."""
    audio_s: float
    """Length of what was said."""
    underrun_s: float
    """How long a player that starts at the first packet, with no reserve, stands still."""

    def __post_init__(self) -> None:
        if not 0 < self.ttfp_s <= self.total_s or self.audio_s <= 0 or self.underrun_s < 0:
            raise ValueError(f"impossible timing: {self}")

    @property
    def rtf(self) -> float:
        """Seconds of waiting per second of sound."""
        return self.total_s / self.audio_s


async def closed_loop(
    url: str, texts: Sequence[str], streams: int, rounds: int, voices: Sequence[str]
) -> list[UtteranceTiming]:
    """Run `streams` connections at once, each speaking `rounds` texts one after the other.

    Args:
        url: server, such as `http://127.0.0.1:8000`.
        texts: dealt out round-robin, so that every stream says something else.
        voices: dealt out likewise.
    """
    socket_url = url.replace("http", "ws", 1) + "/v1/audio/speech/stream"

    async def stream(number: int) -> list[UtteranceTiming]:
        async with connect(socket_url, max_size=None) as connection:
            await _configure(connection, voices[number % len(voices)], seed=number)
            return [
                await _speak(connection, texts[(number + turn * streams) % len(texts)])
                for turn in range(rounds)
            ]

    async with asyncio.TaskGroup() as group:
        tasks = [group.create_task(stream(number)) for number in range(streams)]
    return [timing for task in tasks for timing in task.result()]


async def _configure(connection: ClientConnection, voice: str, seed: int) -> None:
    config = {"type": "session.config", "voice": voice, "seed": seed}
    await connection.send(json.dumps(config))
    await _expect(connection, "session.configured")


async def _speak(connection: ClientConnection, text: str) -> UtteranceTiming:
    await connection.send(json.dumps({"type": "input.text", "text": text}))
    sent = time.perf_counter()
    await connection.send(json.dumps({"type": "input.done"}))
    start = await _expect(connection, "audio.start")
    bytes_per_s = start["sample_rate"] * start["channels"] * BYTES_PER_SAMPLE
    arrivals: list[tuple[float, float]] = []
    while isinstance(message := await connection.recv(), bytes):
        arrivals.append((time.perf_counter() - sent, len(message) / bytes_per_s))
    if json.loads(message)["type"] != "audio.done":
        raise RuntimeError(f"the server answered {message}")
    await _expect(connection, "input.spoken")
    return _timing(arrivals)


async def _expect(connection: ClientConnection, kind: str) -> dict[str, int]:
    message: dict[str, int] = json.loads(await connection.recv())
    if message["type"] != kind:
        raise RuntimeError(f"expected {kind}, the server answered {message}")
    return message


def _timing(arrivals: Sequence[tuple[float, float]]) -> UtteranceTiming:
    """From (seconds since sending, seconds of sound) of each packet."""
    underrun_s = 0.0
    runs_dry_at = arrivals[0][0]
    for arrived, audio_s in arrivals:
        late = max(0.0, arrived - runs_dry_at)
        underrun_s += late
        runs_dry_at += late + audio_s
    return UtteranceTiming(
        ttfp_s=arrivals[0][0],
        total_s=arrivals[-1][0],
        audio_s=sum(audio_s for _, audio_s in arrivals),
        underrun_s=underrun_s,
    )
