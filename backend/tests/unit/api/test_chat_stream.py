"""POST /v1/chat/completions with `"stream": true`."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import FakeService, eventually
from live_server import Server, running, until_still
from test_chat import CHAT, SPOKEN, asking, spoken_samples

from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import RequestFailed, StageDied

Chunk = dict[str, Any]


def collect_events(body: str) -> list[Chunk]:
    """The chunks of a stream that ended as it should."""
    *events, done, rest = body.split("\n\n")
    assert (done, rest) == ("data: [DONE]", "")
    return [json.loads(event.removeprefix("data: ")) for event in events]


async def streamed(http: httpx.AsyncClient, body: dict[str, Any]) -> list[Chunk]:
    response = await http.post(CHAT, json={**body, "stream": True})
    assert response.status_code == 200, response.text
    assert response.headers["content-type"].startswith("text/event-stream")
    chunks = collect_events(response.text)
    assert len({(chunk["id"], chunk["created"], chunk["model"]) for chunk in chunks}) == 1
    assert {chunk["object"] for chunk in chunks} == {"chat.completion.chunk"}
    return chunks


def deltas(chunks: list[Chunk]) -> list[dict[str, Any]]:
    return [chunk["choices"][0]["delta"] for chunk in chunks if chunk["choices"]]


async def test_text(http: httpx.AsyncClient) -> None:
    chunks = await streamed(http, asking("abcdefgh"))
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"content": "abc"},
        {"content": "def"},
        {"content": "gh"},
        {},
    ]
    reasons = [chunk["choices"][0]["finish_reason"] for chunk in chunks]
    assert reasons == [None] * 4 + ["stop"]
    assert not any("usage" in chunk for chunk in chunks)


async def test_text_and_sound_as_they_are_made(http: httpx.AsyncClient) -> None:
    text = "The kettle is on, and the tea is made."
    body = asking(text, **SPOKEN, stream_options={"include_usage": True})
    chunks = await streamed(http, body)
    *pieces, end, usage = chunks
    assert usage["choices"] == []
    assert usage["usage"]["prompt_tokens"] == 1
    assert end["choices"][0]["finish_reason"] == "stop"
    first, *audio = [delta["audio"] for delta in deltas(pieces)]
    assert set(first) == {"id"}
    assert deltas(pieces)[0]["role"] == "assistant"
    assert audio[-1].keys() == {"expires_at"}
    kinds = [next(iter(delta)) for delta in audio[:-1]]
    assert set(kinds) == {"transcript", "data"}
    # Sound leaves while text is still to come.
    assert kinds.index("data") < len(kinds) - 1 - kinds[::-1].index("transcript")
    assert "".join(delta.get("transcript", "") for delta in audio) == text
    sound = b"".join(base64.b64decode(delta.get("data", "")) for delta in audio)
    heard = np.frombuffer(sound, "<i2")
    assert len(heard) == pytest.approx(len(spoken_samples(text)) * 1.5, abs=2)
    spoken = {"role": "assistant", "audio": {"id": first["id"]}}
    again = await http.post(CHAT, json={"messages": [spoken, {"role": "user", "content": "?"}]})
    assert again.status_code == 200


async def test_an_empty_answer(server: Server, http: httpx.AsyncClient) -> None:
    server.service.omni.behaviour.text = ""
    assert deltas(await streamed(http, asking())) == [{"role": "assistant", "content": ""}, {}]


async def test_nothing_behind_a_stop_text_leaves(server: Server, http: httpx.AsyncClient) -> None:
    chunks = await streamed(http, asking("abcdefghijkl" * 50, stop=["fg"], **SPOKEN))
    written = [delta.get("audio", {}).get("transcript", "") for delta in deltas(chunks)]
    assert "".join(written) == "abcde"
    assert chunks[-1]["choices"][0]["finish_reason"] == "stop"
    assert (server.service.omni.counts.aborted, server.service.omni.counts.open) == (1, 0)


@pytest.mark.parametrize("audio_format", ["wav", "mp3"])
async def test_sound_is_streamed_as_pcm16_alone(http: httpx.AsyncClient, audio_format: str) -> None:
    body = asking(**SPOKEN, audio={"format": audio_format}, stream=True)
    error = (await http.post(CHAT, json=body)).json()["error"]
    assert error["param"] == "audio.format"
    assert "'pcm16'" in error["message"]


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(
    ("error", "status", "code"),
    [(StageDied("it ended"), 503, "stage_died"), (RequestFailed("no"), 500, "request_failed")],
)
async def test_faults_before_the_first_words_are_http_errors(
    server: Server,
    http: httpx.AsyncClient,
    stream: bool,
    error: Exception,
    status: int,
    code: str,
) -> None:
    model = server.service.omni
    model.behaviour.fail_after, model.behaviour.error = 0, error
    response = await http.post(CHAT, json=asking(stream=stream))
    assert response.status_code == status
    assert response.json()["error"]["code"] == code
    assert model.counts.open == 0


async def test_a_fault_in_the_middle_is_an_error_event(
    server: Server, http: httpx.AsyncClient
) -> None:
    model = server.service.omni
    model.behaviour.fail_after, model.behaviour.error = 2, RequestFailed("the stage gave up")
    response = await http.post(CHAT, json=asking(stream=True))
    assert response.status_code == 200
    *chunks, error, rest = response.text.split("\n\n")
    assert rest == ""
    assert len(chunks) == 3
    assert json.loads(error.removeprefix("data: ")) == {
        "error": {
            "message": "the stage gave up",
            "type": "server_error",
            "param": None,
            "code": "request_failed",
        }
    }
    assert model.counts.open == 0
    # Whole, the same answer is an HTTP error: nothing of it has been sent.
    assert (await http.post(CHAT, json=asking())).status_code == 500


async def test_a_client_that_leaves_frees_its_request(
    server: Server, http: httpx.AsyncClient
) -> None:
    model = server.service.omni
    model.behaviour.may_continue = asyncio.Event()
    async with http.stream("POST", CHAT, json=asking(stream=True)) as response:
        assert await anext(response.aiter_lines())
        assert model.counts.open == 1
    await eventually(lambda: model.counts.open == 0)
    assert model.counts.aborted == 1


async def test_a_slow_reader_holds_its_answer_back() -> None:
    service = FakeService()
    model = service.omni
    model.behaviour.samples = 16_000
    text = "abc" * 600
    async with running(service, small_buffers=True) as server:
        await eventually(lambda: service.ready)
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as http,
            http.stream("POST", CHAT, json=asking(text, stream=True, **SPOKEN)) as response,
        ):
            assert response.status_code == 200
            await until_still(lambda: model.counts.events)
            # Ten minutes of sound would be made at once.
            assert model.counts.events < 300
            assert model.counts.open == 1
        await eventually(lambda: model.counts.open == 0)
    assert model.counts.aborted == 1


async def test_a_reader_that_stops_is_disconnected() -> None:
    service = FakeService()
    model = service.omni
    model.behaviour.samples = 16_000
    settings = ServerSettings(stall_timeout_s=0.2)
    async with running(service, settings, small_buffers=True) as server:
        await eventually(lambda: service.ready)
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60, verify=False) as http,
            http.stream("POST", CHAT, json=asking("abc" * 600, stream=True, **SPOKEN)),
        ):
            await eventually(lambda: model.counts.aborted == 1)
            assert model.counts.open == 0
            metrics = (await http.get("/metrics")).text
    assert 'cantata_aborts_total{model="omni",reason="client_stalled"} 1.0' in metrics


async def test_other_options_of_the_template_reach_the_model(
    server: Server, http: httpx.AsyncClient
) -> None:
    sent = {"enable_thinking": True, "thinking": "long", "style": {"tone": ["warm"]}}
    await streamed(http, asking("abc", model="reader", chat_template_kwargs=sent))
    [request] = server.service.reader.counts.requests
    assert request.thinks
    assert json.loads(request.chat_template_kwargs) == {
        "thinking": "long",
        "style": {"tone": ["warm"]},
    }


async def test_a_thought_comes_before_the_answer_and_counts(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.service.reader.behaviour.thought = ("Six ", "letters", "")
    body = asking(
        "abcdef",
        model="reader",
        chat_template_kwargs={"enable_thinking": True},
        stop="f",
        stream_options={"include_usage": True},
    )
    *chunks, usage = await streamed(http, body)
    assert deltas(chunks) == [
        {"role": "assistant", "content": ""},
        {"reasoning_content": "Six "},
        {"reasoning_content": "letters"},
        {"content": "abc"},
        {"content": "de"},
        {},
    ]
    cost = usage["usage"]
    assert cost["completion_tokens"] == 5
    details = cost["completion_tokens_details"]
    assert (details["text_tokens"], details["reasoning_tokens"]) == (2, 3)
    whole = (await http.post(CHAT, json=body)).json()
    message = whole["choices"][0]["message"]
    assert (message["reasoning_content"], message["content"]) == ("Six letters", "abcde")
    assert whole["usage"] == cost
    plain = (await http.post(CHAT, json=asking("abc", model="reader"))).json()
    assert "reasoning_content" not in plain["choices"][0]["message"]
