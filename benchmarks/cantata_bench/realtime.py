"""Spoken conversations: how soon an answer sounds, and how soon it stops when it is interrupted.

Each session speaks in real time, hears the beginning of a long answer, and interrupts it with its
next question. What the words are answered with is not measured: an endpoint in this process has
its answer ready.
"""

from __future__ import annotations

import asyncio
import base64
import json
import time
from collections.abc import AsyncIterator, Callable, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import uvicorn
from numpy.typing import NDArray
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route
from websockets.asyncio.client import ClientConnection, connect

from cantata_bench.server import free_port, running_server

RATE = 24_000
FRAME_S = 0.02
QUESTION = "The children walk home along the river after school."
SENTENCE = "She went to the market to buy some bread and milk. "
SENTENCES = 60
"""Sentences of an answer: minutes of sound, so that each interruption comes before its end."""
LISTENED_S = 0.5
"""Seconds of an answer that are heard before it is interrupted."""
LOUD = 1000
"""Level at which speech begins, of 32,768: above any noise of a voice."""
WAIT_S = 30.0

ANSWER_GOAL_S, INTERRUPTION_GOAL_S = 0.4, 0.1
"""Medians."""


@dataclass(slots=True)
class Figures:
    """Seconds, one for each turn."""

    answers: list[float] = field(default_factory=list)
    """Seconds from the end of the sound that ended the turn, including the silence that was waited
    for, to the first sound of the answer."""
    interruptions: list[float] = field(default_factory=list)
    """Seconds from the first loud sample of an interruption to the last sound of the answer."""


class _Session:
    """The client of one conversation."""

    def __init__(self, socket: ClientConnection, question: bytes, figures: Figures) -> None:
        self._socket = socket
        self._question = question
        samples = np.frombuffer(question, "<i2")
        self._onset_s = float(np.argmax(np.abs(samples) > LOUD)) / RATE
        self._figures = figures
        self._sent_s = 0.0
        """Seconds of sound sent since the session's start."""
        self._sent_at: list[tuple[float, float]] = []
        """When sound up to here had been sent."""
        self._events: asyncio.Queue[tuple[float, dict[str, Any]]] = asyncio.Queue()
        self._rest = b""
        """The rest of the question that is being spoken."""

    async def run(self, turns: int) -> None:
        async with asyncio.TaskGroup() as group:
            tasks = [group.create_task(self._speak()), group.create_task(self._listen())]
            for turn in range(turns + 1):
                onset_s = self._ask()
                if turn:
                    self._figures.interruptions.append(await self._interrupted(onset_s))
                answered = await self._answered()
                if turn < turns:
                    self._figures.answers.append(answered)
                await asyncio.sleep(LISTENED_S)
            for task in tasks:
                task.cancel()

    def _ask(self) -> float:
        """Begin to speak; returns where the first loud sample will be, in sound since the start."""
        self._rest = self._question
        return self._sent_s + self._onset_s

    async def _answered(self) -> float:
        end_ms = (await self._event("input_audio_buffer.speech_stopped"))[1]["audio_end_ms"]
        at, _ = await self._event("response.output_audio.delta")
        return at - self._to_time(end_ms / 1000)

    async def _interrupted(self, onset_s: float) -> float:
        last_at = 0.0
        async with asyncio.timeout(WAIT_S):
            while True:
                at, event = await self._events.get()
                if event["type"] == "response.output_audio.delta":
                    last_at = at
                if event["type"] == "response.done":
                    assert event["response"]["status"] == "cancelled", "the answer was too short"
                    # The last sound may have come before anything was said.
                    return max(0.0, last_at - self._to_time(onset_s))

    async def _event(self, kind: str) -> tuple[float, dict[str, Any]]:
        async with asyncio.timeout(WAIT_S):
            while True:
                at, event = await self._events.get()
                if event["type"] == kind:
                    return at, event

    def _to_time(self, position_s: float) -> float:
        return next(at for upto_s, at in self._sent_at if upto_s >= position_s - FRAME_S / 2)

    async def _listen(self) -> None:
        async for message in self._socket:
            event = json.loads(message)
            assert event["type"] != "error", event
            self._events.put_nowait((time.monotonic(), event))

    async def _speak(self) -> None:
        """A microphone that is always open."""
        size = 2 * round(FRAME_S * RATE)
        started = time.monotonic()
        while True:
            frame, self._rest = self._rest[:size].ljust(size, b"\0"), self._rest[size:]
            audio = base64.b64encode(frame).decode()
            await self._socket.send(
                json.dumps({"type": "input_audio_buffer.append", "audio": audio})
            )
            self._sent_s += FRAME_S
            self._sent_at.append((self._sent_s, time.monotonic()))
            await asyncio.sleep(started + self._sent_s - time.monotonic())


@asynccontextmanager
async def _chat() -> AsyncIterator[str]:
    """A chat endpoint whose answers are long; its base address."""

    async def pieces() -> AsyncIterator[str]:
        for _ in range(SENTENCES):
            yield f"data: {json.dumps({'choices': [{'delta': {'content': SENTENCE}}]})}\n\n"
        yield "data: [DONE]\n\n"

    async def answer(request: Request) -> StreamingResponse:
        return StreamingResponse(pieces(), media_type="text/event-stream")

    app = Starlette(routes=[Route("/v1/chat/completions", answer, methods=["POST"])])
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    serving = asyncio.create_task(server.serve())
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        await serving


async def _converse(url: str, sessions: int, turns: int) -> Figures:
    """Sessions at a time, which begin one after the other."""
    async with httpx.AsyncClient(base_url=url, timeout=WAIT_S) as http:
        body = {"input": QUESTION, "response_format": "pcm", "sample_rate": RATE}
        question = (await http.post("/v1/audio/speech", json=body)).raise_for_status().content
    figures = Figures()
    turn_s = len(question) / (2 * RATE) + LISTENED_S + 1

    async def one(number: int) -> None:
        await asyncio.sleep(number * turn_s / sessions)
        address = url.replace("http", "ws", 1) + "/v1/realtime"
        async with connect(address, max_size=None, close_timeout=1) as socket:
            await _Session(socket, question, figures).run(turns)

    async with asyncio.TaskGroup() as group:
        for number in range(sessions):
            group.create_task(one(number))
    return figures


async def measure_realtime(
    model: str | None, sessions: Sequence[int], turns: int, folder: Path
) -> dict[int, Figures]:
    """Start a server and hold conversations with it, by numbers of sessions at a time.

    Args:
        model: what is served; None: the embedded voice.
        sessions: at a time.
        turns: of each session. As many sessions of one turn come before, uncounted: recognisers
            are made when they are needed.
        folder: takes the server's log.
    """
    found = {}
    async with _chat() as chat:
        options = [
            "--chat-url",
            chat,
            "--chat-model",
            "ready",
            *(["--model", model] if model else []),
        ]
        serving = running_server(folder / "realtime.log", options=options)
        server = await asyncio.to_thread(serving.__enter__)
        try:
            for number in sessions:
                await _converse(server.url, number, 1)
                found[number] = await _converse(server.url, number, turns)
        finally:
            await asyncio.to_thread(serving.__exit__, None, None, None)
    return found


def realtime_table(found: dict[int, Figures]) -> str:
    """Markdown: milliseconds, and whether the medians meet their goals."""
    kinds: dict[str, tuple[Callable[[Figures], list[float]], float]] = {
        "end of speech to first sound": (lambda figures: figures.answers, ANSWER_GOAL_S),
        "barge-in to last sound": (lambda figures: figures.interruptions, INTERRUPTION_GOAL_S),
    }
    lines = ["| sessions | | turns | p50 ms | p95 ms | goal |", "|-|-|-|-|-|-|"]
    for sessions, figures in found.items():
        for name, (values_of, goal_s) in kinds.items():
            values: NDArray[np.float64] = 1000 * np.array(values_of(figures))
            p50, p95 = np.percentile(values, [50, 95])
            met = "met" if p50 <= 1000 * goal_s else f"missed ({1000 * goal_s:.0f} ms)"
            lines.append(f"| {sessions} | {name} | {len(values)} | {p50:.0f} | {p95:.0f} | {met} |")
    return "\n".join(lines)
