"""A real HTTP server with OpenAI's chat and transcription routes; tests decide what it says."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import uvicorn
from fake_service import eventually
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import JSONResponse, Response, StreamingResponse
from starlette.routing import Route

from cantata.api.server.listening import get_url, listen
from cantata.speech_input.settings import Endpoint


class Endpoints:
    """What it says, and what it was asked."""

    def __init__(self) -> None:
        self.deltas = ["The ", "answer."]
        self.calls: list[dict[str, Any]] = []
        """Pieces of `tool_calls`, after the text."""
        self.deltas_behind: list[str] = []
        """Text after the calls."""
        self.finish = "stop"
        self.status = 200
        self.broken = False
        """Ends in the middle of a chunk."""
        self.gate: asyncio.Event | None = None
        """Awaited before each delta but the first."""
        self.words = "what the endpoint heard"
        self.asked: list[dict[str, Any]] = []
        self.sounds: list[bytes] = []
        self.forms: list[dict[str, Any]] = []
        """Fields of the sounds."""
        self.keys: list[str | None] = []
        self.open = 0
        """Answers in progress."""
        self.chat: Endpoint
        self.transcription: Endpoint

    def answer_by_call(self) -> None:
        """The next answer is a function call, in pieces."""
        self.deltas = []
        self.finish = "tool_calls"
        first = {"name": "tell_time", "arguments": ""}
        self.calls = [
            {"index": 0, "id": "call_1", "type": "function", "function": first},
            {"index": 0, "function": {"arguments": '{"zone": '}},
            {"index": 0, "function": {"arguments": '"UTC"}'}},
        ]

    def answer_in_words(self, text: str) -> None:
        """The next answers are this text."""
        self.deltas, self.calls, self.finish = [text], [], "stop"

    async def answer(self, request: Request) -> Response:
        self.asked.append(await request.json())
        self.keys.append(request.headers.get("authorization"))
        if self.status != 200:
            return JSONResponse({"error": {"message": "no such model"}}, self.status)
        return StreamingResponse(self._chunks(), media_type="text/event-stream")

    async def hear(self, request: Request) -> Response:
        async with request.form() as form:
            file = form["file"]
            assert not isinstance(file, str)
            self.sounds.append(await file.read())
            self.asked.append({"model": form["model"]})
            self.forms.append({name: form[name] for name in form if name != "file"})
        if self.status != 200:
            return JSONResponse({"error": {"message": "no"}}, self.status)
        return JSONResponse({"text": f" {self.words} "})

    async def _chunks(self) -> AsyncIterator[str]:
        self.open += 1
        try:
            yield ": a comment\n\n"
            yield _chunk({"role": "assistant", "content": ""})
            for index, text in enumerate(self.deltas):
                if index and self.gate is not None:
                    await self.gate.wait()
                yield _chunk({"content": text})
            for call in self.calls:
                yield _chunk({"tool_calls": [call]})
            for text in self.deltas_behind:
                yield _chunk({"content": text})
            if self.broken:
                yield "data: {broken\n\n"
                return
            yield _chunk({}, self.finish)
            yield 'data: {"choices": [], "usage": {"total_tokens": 3}}\n\n'
            yield "data: [DONE]\n\n"
        finally:
            self.open -= 1


def _chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({'object': 'chat.completion.chunk', 'choices': [choice]})}\n\n"


@asynccontextmanager
async def endpoints() -> AsyncIterator[Endpoints]:
    """A running one, on a free port."""
    one = Endpoints()
    routes = [
        Route("/v1/chat/completions", one.answer, methods=["POST"]),
        Route("/v1/audio/transcriptions", one.hear, methods=["POST"]),
    ]
    listener = listen("127.0.0.1", 0)
    server = uvicorn.Server(uvicorn.Config(Starlette(routes=routes), log_config=None))
    serving = asyncio.create_task(server.serve(sockets=[listener]))
    await eventually(lambda: server.started)
    base = f"{get_url(listener)}/v1"
    one.chat = Endpoint(base, "a-chat-model", "chat-key")
    one.transcription = Endpoint(base, "a-transcription-model")
    try:
        yield one
    finally:
        # Connections that clients keep open are not waited for.
        server.should_exit = server.force_exit = True
        await serving
        listener.close()
