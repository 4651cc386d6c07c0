"""OpenAI's own SDK."""

from __future__ import annotations

import asyncio
import base64
import contextlib
import json
from collections.abc import Callable, Iterator
from typing import TypeVar

import httpx
import openai
import pytest

from .conftest import Address
from .listening import KEY, LONG_TEXT, SENTENCES, assert_heard, decode, samples

pytestmark = pytest.mark.e2e

_MAX_ROOM = 64
T = TypeVar("T")


@pytest.fixture
def client(server: Address) -> Iterator[openai.OpenAI]:
    with openai.OpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:
        yield client


def test_a_file_in_openais_default_format(client: openai.OpenAI) -> None:
    answer = client.audio.speech.create(model="tts-1", voice="alloy", input=SENTENCES)
    assert answer.response.headers["content-type"] == "audio/mpeg"
    assert_heard(*decode(answer.content))


@pytest.mark.parametrize("response_format", ["opus", "aac", "flac", "wav"])
def test_files(client: openai.OpenAI, response_format: str) -> None:
    answer = client.audio.speech.create(
        model="gpt-4o-mini-tts",
        voice="nova",
        input=SENTENCES,
        response_format=response_format,  # type: ignore[arg-type]
        instructions="Speak cheerfully.",
        speed=1.0,
    )
    assert_heard(*decode(answer.content))


def test_streamed(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="tts-1", voice="alloy", input=SENTENCES, response_format="pcm"
    ) as answer:
        pieces = list(answer.iter_bytes())
    assert len(pieces) > 1
    assert_heard(samples(b"".join(pieces)), int(answer.headers["x-sample-rate"]))


def test_headers_of_the_raw_response(client: openai.OpenAI) -> None:
    raw = client.audio.speech.with_raw_response.create(
        model="tts-1", voice="alloy", input=SENTENCES, response_format="pcm"
    )
    assert raw.headers["x-channels"] == "1"
    assert raw.headers["x-request-id"] == raw.request_id
    assert_heard(samples(raw.parse().content), int(raw.headers["x-sample-rate"]))


def test_server_sent_events(client: openai.OpenAI) -> None:
    with client.audio.speech.with_streaming_response.create(
        model="gpt-4o-mini-tts", voice="alloy", input=SENTENCES, stream_format="sse"
    ) as answer:
        lines = [line for line in answer.iter_lines() if line.startswith("data: ")]
    events = [json.loads(line.removeprefix("data: ")) for line in lines]
    assert {event["type"] for event in events} == {"speech.audio.delta", "speech.audio.done"}
    assert_heard(*decode(b"".join(base64.b64decode(event.get("audio", "")) for event in events)))


async def test_async_and_side_by_side(server: Address) -> None:
    async with openai.AsyncOpenAI(base_url=f"{server.http}/v1", api_key=KEY) as client:

        async def one() -> bytes:
            async with client.audio.speech.with_streaming_response.create(
                model="tts-1", voice="alloy", input=SENTENCES, response_format="pcm"
            ) as answer:
                return b"".join([piece async for piece in answer.iter_bytes()])

        first, second = await asyncio.gather(one(), one())
    assert first == second
    assert_heard(samples(first), 24_000)


def test_models(client: openai.OpenAI) -> None:
    models = client.models.list().data
    assert models
    for model in models:
        assert client.models.retrieve(model.id).id == model.id


def test_errors_have_their_fields(client: openai.OpenAI) -> None:
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="tts-1", voice="nobody", input="hello")
    error = refused.value
    assert (error.code, error.type) == ("voice_not_found", "invalid_request_error")
    assert error.param == "voice"
    assert error.request_id is not None
    assert error.request_id.startswith("req_")
    with pytest.raises(openai.BadRequestError) as refused:
        client.audio.speech.create(model="tts-1", voice="alloy", input="")
    assert refused.value.param == "input"
    with pytest.raises(openai.NotFoundError) as unknown:
        client.audio.speech.create(model="nothing", voice="alloy", input="hello")
    assert unknown.value.code == "model_not_found"


def test_overload_is_retried_until_there_is_room(server: Address, client: openai.OpenAI) -> None:
    hasty = client.with_options(max_retries=0).audio.speech

    def refused() -> openai.RateLimitError | None:
        try:
            hasty.create(model="tts-1", voice="alloy", input="hello")
        except openai.RateLimitError as error:
            return error
        return None

    with contextlib.ExitStack() as listeners, contextlib.ExitStack() as clients:

        def make_room(response: httpx.Response) -> None:
            if response.status_code == httpx.codes.TOO_MANY_REQUESTS:
                listeners.close()

        hooks = {"response": [make_room]}
        http = clients.enter_context(openai.DefaultHttpxClient(event_hooks=hooks))
        patient = client.with_options(http_client=http, max_retries=5).audio.speech

        def retried() -> openai.HttpxBinaryResponseContent | None:
            raw = patient.with_raw_response.create(
                model="tts-1", voice="alloy", input=SENTENCES, response_format="pcm"
            )
            return raw.parse() if raw.retries_taken else None

        error = _crowd(server, listeners, refused)
        assert error.code == "rate_limit_exceeded"
        assert error.response.headers["retry-after"]
        answer = _crowd(server, listeners, retried)
    assert_heard(samples(answer.content), 24_000)


def _crowd(server: Address, listeners: contextlib.ExitStack, ask: Callable[[], T | None]) -> T:
    """Open streams that read nothing, one by one, until `ask` has an answer: how many
    there is room for may change at any time."""
    body = {"input": LONG_TEXT, "response_format": "pcm"}
    http = listeners.enter_context(httpx.Client(timeout=60, limits=httpx.Limits()))
    for _ in range(_MAX_ROOM):
        request = http.build_request("POST", f"{server.http}/v1/audio/speech", json=body)
        listeners.callback(http.send(request, stream=True).close)
        if (answer := ask()) is not None:
            return answer
    raise AssertionError(f"the server had room for {_MAX_ROOM} listeners")
