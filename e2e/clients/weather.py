"""A language model that asks its client's function for the weather, and says what that answered."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator, Iterator
from contextlib import contextmanager
from threading import Thread
from typing import Any

import uvicorn
from starlette.applications import Starlette
from starlette.requests import Request
from starlette.responses import StreamingResponse
from starlette.routing import Route

from cantata_bench.asr import transcribe, word_error_rate
from cantata_bench.server import free_port

from .conversing import RATE, WORST_WER, Answer
from .listening import samples

FUNCTION = "get_weather"
CITY = "Paris"
WEATHER = "sunny and warm, with a light wind from the south"
ANSWER = f"The weather in {CITY} is {WEATHER}."
GREETING = "Hello."
"""To whoever lets it speak first."""
PARAMETERS = {
    "type": "object",
    "properties": {"city": {"type": "string"}},
    "required": ["city"],
    "additionalProperties": False,
}
TOOL = {
    "type": "function",
    "name": FUNCTION,
    "description": "The weather in a city.",
    "parameters": PARAMETERS,
}
"""As in a session of the Realtime API."""
_STOP_S = 30.0


def assert_told(answer: Answer) -> None:
    """It is what the model says once the function has answered, and sounds so."""
    assert answer.text.strip() == ANSWER
    heard = transcribe(samples(answer.sound), RATE)
    assert word_error_rate([ANSWER], [heard]) <= WORST_WER, heard


@contextmanager
def serve_weather_chat() -> Iterator[str]:
    """Its base address, as of OpenAI's chat API."""
    app = Starlette(routes=[Route("/v1/chat/completions", _answer, methods=["POST"])])
    port = free_port()
    server = uvicorn.Server(uvicorn.Config(app, port=port, log_config=None))
    thread = Thread(target=lambda: asyncio.run(server.serve()))
    thread.start()
    try:
        yield f"http://127.0.0.1:{port}/v1"
    finally:
        server.should_exit = True
        thread.join(_STOP_S)


async def _answer(request: Request) -> StreamingResponse:
    body = await request.json()
    return StreamingResponse(_write_chunks(body), media_type="text/event-stream")


async def _write_chunks(body: dict[str, Any]) -> AsyncIterator[str]:
    """A call in pieces, as models stream them, or words."""
    last = body["messages"][-1] if body["messages"] else {"role": "system"}
    if last["role"] == "system":
        yield _write_chunk({"content": GREETING})
        yield _write_chunk({}, "stop")
    elif last["role"] == "tool":
        arguments = body["messages"][-2]["tool_calls"][0]["function"]["arguments"]
        city = json.loads(arguments)["city"]
        returned = last["content"].strip('"')  # some clients send it as JSON
        for word in f"The weather in {city} is {returned}.".split(" "):
            yield _write_chunk({"content": f"{word} "})
        yield _write_chunk({}, "stop")
    else:
        (tool,) = body["tools"]
        called = {"name": tool["function"]["name"], "arguments": ""}
        for piece in (
            {"index": 0, "id": "call_weather", "type": "function", "function": called},
            {"index": 0, "function": {"arguments": '{"city": '}},
            {"index": 0, "function": {"arguments": f'"{CITY}"}}'}},
        ):
            yield _write_chunk({"tool_calls": [piece]})
        yield _write_chunk({}, "tool_calls")
    yield "data: [DONE]\n\n"


def _write_chunk(delta: dict[str, Any], finish: str | None = None) -> str:
    chunk = {"object": "chat.completion.chunk", "model": "weather"}
    choice = {"index": 0, "delta": delta, "finish_reason": finish}
    return f"data: {json.dumps({**chunk, 'choices': [choice]})}\n\n"
