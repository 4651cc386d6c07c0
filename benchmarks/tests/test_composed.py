"""Composed models and joined servers: what is asked of them, and the table."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import Response, StreamingResponse
from starlette.routing import Route

from cantata_bench.composed import (
    RATE,
    AnswerTiming,
    ComposedFigures,
    WayFigures,
    ask_composed,
    ask_joined,
    composed_table,
)
from cantata_bench.server import free_port

PIECES = ("It is ", "big. And", " deep.")
PCM = b"\1\0" * RATE


class Servers:
    """A chat and a voice, which write down in which order they were asked."""

    def __init__(self) -> None:
        self.heard: list[str] = []
        self.first_is_spoken = asyncio.Event()

    async def chat(self, request: Request) -> Response:
        body = await request.json()
        speaks = "audio" in body.get("modalities", [])

        async def events() -> AsyncIterator[str]:
            for piece in PIECES:
                if piece == PIECES[-1] and not speaks:
                    # The first sentence is complete, so it is spoken before the text ends.
                    await asyncio.wait_for(self.first_is_spoken.wait(), 30)
                yield write_event({"content": piece})
            if speaks:
                yield write_event({"audio": {"data": base64.b64encode(PCM).decode()}})
            yield "data: [DONE]\n\n"

        return StreamingResponse(events(), media_type="text/event-stream")

    async def speech(self, request: Request) -> Response:
        self.heard.append((await request.json())["input"])
        self.first_is_spoken.set()
        return Response(PCM)


def write_event(delta: dict[str, Any]) -> str:
    return f"data: {json.dumps({'choices': [{'delta': delta}]})}\n\n"


@asynccontextmanager
async def serving(servers: Servers) -> AsyncIterator[str]:
    app = Starlette(
        routes=[
            Route("/v1/chat/completions", servers.chat, methods=["POST"]),
            Route("/v1/audio/speech", servers.speech, methods=["POST"]),
        ]
    )
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    task = asyncio.create_task(server.serve())
    while not server.started:  # noqa: ASYNC110
        await asyncio.sleep(0.01)
    try:
        yield f"http://127.0.0.1:{port}"
    finally:
        server.should_exit = True
        await task


@pytest.fixture
def servers() -> Servers:
    return Servers()


async def test_joined_servers_speak_each_sentence_once_it_is_complete(servers: Servers) -> None:
    async with serving(servers) as url:
        answer = await ask_joined(url, url, "mind", "What is it?")
    assert servers.heard == ["It is big.", "And deep."]
    assert answer.text == "".join(PIECES)
    assert answer.sound_s == 2.0
    assert answer.first_sound_s > 0


async def test_a_composed_model_is_asked_once(servers: Servers) -> None:
    async with serving(servers) as url:
        answer = await ask_composed(url, "mind", "What is it?")
    assert not servers.heard
    assert (answer.text, answer.sound_s) == ("".join(PIECES), 1.0)


def test_the_table_judges_ratios() -> None:
    def way(*first_s: float, cpu_s: float) -> WayFigures:
        return WayFigures([AnswerTiming("", one, 2.0) for one in first_s], cpu_s)

    table = composed_table(
        ComposedFigures(
            way(0.5, 0.5, cpu_s=2), way(1.0, 1.0, cpu_s=4), way(1.5, 1.5, cpu_s=2), sessions=2
        )
    )
    assert "First sound of one server: 0.50 times that of two (goal 0.7: met)" in table
    assert "CPU 0.50 times" in table
    assert "p95 of 2 at a time: 3.00 times one's (goal 2: missed)" in table
    assert "| one server | 2 | 0.50 / 0.50 s | 0.50 |" in table
