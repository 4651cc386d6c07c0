"""POST /v1/audio/speech/batch: a line for every text, whatever happens to the others."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import httpx
import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running

from cantata.api.schemas import MAX_BATCH_INPUT_CHARACTERS, MAX_BATCH_REQUESTS
from cantata.api.settings import ServerSettings
from cantata.api.speech import whole
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed

URL = "/v1/audio/speech/batch"


def items(*texts: str, **options: Any) -> dict[str, Any]:
    """A batch of these texts; their ids are numbers."""
    named = enumerate(texts)
    return {"requests": [{"custom_id": str(i), "input": text, **options} for i, text in named]}


async def lines(http: httpx.AsyncClient, body: dict[str, Any]) -> dict[str, dict[str, Any]]:
    """The answer's lines by their custom_id."""
    response = await http.post(URL, json=body)
    assert response.status_code == 200
    assert response.headers["content-type"] == "application/x-ndjson"
    read = [json.loads(line) for line in response.text.splitlines()]
    assert len({line["custom_id"] for line in read}) == len(read)
    return {line["custom_id"]: line for line in read}


async def test_every_text_is_a_file_of_its_own(server: Server, http: httpx.AsyncClient) -> None:
    texts = [f"text number {number}" for number in range(10)]
    may_sound = server.solo.behaviour.may_sound = asyncio.Event()
    asked = asyncio.create_task(lines(http, items(*texts, response_format="pcm")))
    await eventually(lambda: server.solo.counts.open == 4)
    may_sound.set()
    answers = await asked
    for number, text in enumerate(texts):
        answer = answers[str(number)]
        expected = encode_s16le(expected_pcm(text, server.solo.behaviour))
        assert base64.b64decode(answer["audio"]) == expected
        assert (answer["content_type"], answer["sample_rate"]) == ("audio/pcm", 24_000)
        assert answer["duration_s"] == pytest.approx(len(expected) / 48_000)
        assert answer["usage"]["input_tokens"] == len(text)
    assert server.solo.counts.batch == server.solo.counts.started == 10
    assert server.solo.counts.max_open == 4


async def test_items_choose_for_themselves(server: Server, http: httpx.AsyncClient) -> None:
    one = {"custom_id": "a", "input": "hello", "voice": "ben", "response_format": "flac"}
    two = {"custom_id": "b", "input": "hello", "model": "duo", "instructions": "calmly"}
    answers = await lines(http, {"requests": [{**one, "sample_rate": 16_000}, two]})
    assert base64.b64decode(answers["a"]["audio"])[:4] == b"fLaC"
    assert (answers["a"]["sample_rate"], answers["a"]["ignored"]) == (16_000, [])
    assert server.solo.counts.requests[0].voice == "ben"
    assert (answers["b"]["content_type"], answers["b"]["channels"]) == ("audio/mpeg", 2)
    assert answers["b"]["ignored"] == ["instructions"]


async def test_an_items_error_is_its_line_and_the_others_go_on(http: httpx.AsyncClient) -> None:
    body = items("hello", "\u4f60\u597d", "x" * 201, "", "hello again")
    body["requests"] += [
        {"custom_id": "voice", "input": "a", "voice": "bob"},
        {"custom_id": "model", "input": "a", "model": "gpt-9"},
        {"custom_id": "rate", "input": "a", "response_format": "opus", "sample_rate": 44_100},
    ]
    answers = await lines(http, body)
    errors = {name: line["error"] for name, line in answers.items() if "error" in line}
    assert set(answers) - set(errors) == {"0", "4"}
    assert {name: (error["param"], error["code"]) for name, error in errors.items()} == {
        "1": ("input", "invalid_value"),
        "2": ("input", "invalid_value"),
        "3": ("input", "invalid_value"),
        "voice": ("voice", "voice_not_found"),
        "model": ("model", "model_not_found"),
        "rate": ("sample_rate", "invalid_value"),
    }
    assert {error["type"] for error in errors.values()} == {"invalid_request_error"}


async def test_a_text_that_breaks_off_has_no_audio(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 2, RequestFailed("broke")
    answers = await lines(http, items("hello", "a"))
    assert answers["0"]["error"] == {
        "message": "broke",
        "type": "server_error",
        "param": None,
        "code": "request_failed",
    }
    assert "audio" in answers["1"]


async def test_a_file_that_gets_too_large_is_an_error(
    server: Server, http: httpx.AsyncClient, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(whole, "MAX_FILE_BYTES", 20_000)
    server.solo.behaviour.chunks = 1000
    answers = await lines(http, items("hello", response_format="pcm"))
    assert (answers["0"]["error"]["param"], answers["0"]["error"]["code"]) == (
        "input",
        "invalid_value",
    )
    assert server.solo.counts.chunks < 100
    assert server.solo.counts.aborted == 1


async def test_lines_come_as_they_are_ready(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.interval_s = 0.02
    async with http.stream("POST", URL, json=items("x" * 100, "short")) as response:
        answers = response.aiter_lines()
        first = json.loads(await anext(answers))
        assert first["custom_id"] == "1"
        assert server.solo.counts.open == 1
        assert json.loads(await anext(answers))["custom_id"] == "0"


async def test_a_disconnect_cancels_all(server: Server) -> None:
    how = server.solo.behaviour
    how.interval_s, how.abort_s, how.chunks = 0.01, 0.05, 1000
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        asking = asyncio.create_task(client.post(URL, json=items(*"abcdefgh")))
        await eventually(lambda: server.solo.counts.open == 4)
        asking.cancel()
        await asyncio.wait([asking])
    await eventually(lambda: server.solo.counts.open == 0)
    assert (server.solo.counts.started, server.solo.counts.aborted) == (4, 4)
    assert server.solo.counts.abort_interrupted == 0


def working() -> list[str]:
    """Names of the tasks that answer requests."""
    return [t.get_name() for t in asyncio.all_tasks() if t.get_name().startswith("speech:")]


async def test_a_reader_that_stalls_ends_the_batch() -> None:
    service = FakeService()
    service.solo.behaviour.chunks = 1000
    settings = ServerSettings(stall_timeout_s=0.3)
    body = items(*map(str, range(100)), response_format="pcm", sample_rate=48_000)
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60) as client,
            client.stream("POST", URL, json=body) as response,
        ):
            pieces = response.aiter_raw(1024)
            await anext(pieces)
            await eventually(lambda: not working())
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in pieces:
                    pass
        assert service.solo.counts.started < 100


BAD_BATCHES: list[tuple[dict[str, Any], str, str]] = [
    ({}, "requests", "required"),
    ({"requests": []}, "requests", "at least 1"),
    ({"requests": "hello"}, "requests", "valid list"),
    ({"requests": ["hello"]}, "requests[0]", "valid dictionary"),
    ({"requests": [{"input": "a"}]}, "requests[0].custom_id", "required"),
    ({"requests": [{"custom_id": "", "input": "a"}]}, "requests[0].custom_id", "at least 1"),
    ({"requests": [{"custom_id": "a"}]}, "requests[0].input", "required"),
    (items("a", "b" * (MAX_BATCH_INPUT_CHARACTERS + 1)), "requests[1].input", "at most 4096"),
    (items("a", voice={"name": "clara"}), "requests[0].voice", "voice"),
    (items("a", "b", speed=9), "requests[0].speed", "4"),
    (items("a", response_format="ogg"), "requests[0].response_format", "'mp3'"),
    (items("a", sample_rate=7999), "requests[0].sample_rate", "8000"),
    (items(*["a"] * (MAX_BATCH_REQUESTS + 1)), "requests", "at most 128"),
    ({"requests": [*items("a")["requests"], *items("b")["requests"]]}, "requests", "used twice"),
]


@pytest.mark.parametrize(("body", "param", "says"), BAD_BATCHES)
async def test_an_invalid_batch_is_rejected_as_a_whole(
    asgi: httpx.AsyncClient, body: dict[str, Any], param: str, says: str
) -> None:
    response = await asgi.post(URL, json=body)
    error = response.json()["error"]
    assert response.status_code == 400
    assert (error["type"], error["code"]) == ("invalid_request_error", "invalid_value")
    assert error["param"] == param
    assert says in error["message"]


async def test_nothing_is_spoken_before_the_service_is_ready() -> None:
    service = FakeService()
    service.may_start.clear()
    async with (
        running(service) as server,
        httpx.AsyncClient(base_url=server.url, timeout=60) as client,
    ):
        response = await client.post(URL, json=items("hello"))
        assert (response.status_code, response.json()["error"]["code"]) == (503, "not_ready")
        service.may_start.set()
