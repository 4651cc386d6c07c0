"""POST /v1/audio/speech: everything that is rejected, and how."""

from __future__ import annotations

from collections.abc import AsyncIterator
from typing import Any

import httpx
import pytest
from fake_service import eventually
from live_server import Server

from cantata.contract.data.errors import ChunkTimeout, RequestFailed, StageDied

BAD_REQUESTS: list[tuple[dict[str, Any], str, str]] = [
    ({}, "input", "required"),
    ({"input": ""}, "input", "empty"),
    ({"input": "\u4f60\u597d"}, "input", "nothing in it can be spoken"),
    ({"input": "x" * 201}, "input", "at most 200"),
    ({"input": 5}, "input", "valid string"),
    ({"input": None}, "input", "valid string"),
    ({"input": "a", "voice": "bob"}, "voice", "voices: clara, ben"),
    ({"input": "a", "voice": {"id": "bob"}}, "voice", "voices: clara, ben"),
    ({"input": "a", "voice": 3}, "voice", "voice"),
    ({"input": "a", "voice": {"name": "clara"}}, "voice", "voice"),
    ({"input": "a", "voice": ""}, "voice", "voice"),
    ({"input": "a", "speed": 0.2}, "speed", "0.25"),
    ({"input": "a", "speed": 4.1}, "speed", "4"),
    ({"input": "a", "speed": "fast"}, "speed", "valid number"),
    ({"input": "a", "speed": "1.0"}, "speed", "valid number"),
    ({"input": "a", "seed": -1}, "seed", "greater"),
    ({"input": "a", "seed": 1.5}, "seed", "integer"),
    ({"input": "a", "temperature": -0.1}, "temperature", "greater"),
    ({"input": "a", "temperature": True}, "temperature", "number"),
    ({"input": "a", "instructions": ["x"]}, "instructions", "string"),
    ({"input": "a", "stream_format": "ndjson"}, "stream_format", "'audio' or 'sse'"),
    ({"input": "a", "response_format": "ogg"}, "response_format", "'mp3', 'opus', 'aac', 'flac'"),
    ({"input": "a", "response_format": "MP3"}, "response_format", "'wav' or 'pcm'"),
    ({"input": "a", "response_format": 3}, "response_format", "'mp3'"),
    ({"input": "a", "sample_rate": 7_999}, "sample_rate", "greater than or equal to 8000"),
    ({"input": "a", "sample_rate": 48_001}, "sample_rate", "less than or equal to 48000"),
    ({"input": "a", "sample_rate": 16_000.5}, "sample_rate", "integer"),
    ({"input": "a", "sample_rate": "16000"}, "sample_rate", "integer"),
    ({"input": "a", "sample_rate": True}, "sample_rate", "integer"),
    ({"input": "a", "sample_rate": 17_000}, "sample_rate", "'mp3' cannot have sample_rate 17000"),
    (
        {"input": "a", "response_format": "opus", "sample_rate": 44_100},
        "sample_rate",
        "valid: 8000, 12000, 16000, 24000, 48000",
    ),
    (
        {"input": "a", "response_format": "aac", "sample_rate": 8_001},
        "sample_rate",
        "valid: 8000, 11025,",
    ),
    ({"input": "a", "timestamps": "yes"}, "timestamps", "boolean"),
    ({"input": "a", "timestamps": True}, "timestamps", '"stream_format": "sse"'),
]


def to_error(response: httpx.Response) -> dict[str, Any]:
    """The error body, after checking the parts common to all."""
    assert response.headers["x-request-id"].startswith("req_")
    body = response.json()
    assert set(body) == {"error"}
    assert set(body["error"]) == {"message", "type", "param", "code"}
    return dict(body["error"])


@pytest.mark.parametrize(("body", "param", "says"), BAD_REQUESTS)
async def test_bad_fields_are_named(
    asgi: httpx.AsyncClient, body: dict[str, Any], param: str, says: str
) -> None:
    response = await asgi.post("/v1/audio/speech", json=body)
    error = to_error(response)
    assert response.status_code == 400
    assert error["type"] == "invalid_request_error"
    assert error["param"] == param
    assert says in error["message"]
    assert error["code"] == ("voice_not_found" if "voices: clara" in says else "invalid_value")


@pytest.mark.parametrize(
    ("content", "headers", "says"),
    [
        (b"{", {"content-type": "application/json"}, "not valid JSON"),
        (b"", {"content-type": "application/json"}, "JSON object"),
        (b"[]", {"content-type": "application/json"}, "JSON object"),
        (b'"text"', {"content-type": "application/json"}, "JSON object"),
        (b'{"input": "a"}', {"content-type": "text/plain"}, "application/json"),
        (b'{"input": "a", "speed": NaN}', {"content-type": "application/json"}, "speed"),
        (b'{"input": "\\ud800"}', {"content-type": "application/json"}, "input"),
        (b'{"input": "\xff"}', {"content-type": "application/json"}, ""),
    ],
)
async def test_bodies_that_are_no_json_object(
    asgi: httpx.AsyncClient, content: bytes, headers: dict[str, str], says: str
) -> None:
    response = await asgi.post("/v1/audio/speech", content=content, headers=headers)
    assert response.status_code == 400
    assert says in to_error(response)["message"]


async def test_unknown_model_is_404_and_lists_names(asgi: httpx.AsyncClient) -> None:
    response = await asgi.post("/v1/audio/speech", json={"input": "a", "model": "gpt-9"})
    error = to_error(response)
    assert response.status_code == 404
    assert (error["code"], error["param"]) == ("model_not_found", "model")
    assert "solo, duo" in error["message"]


@pytest.mark.parametrize("body", [{"input": "a"}, {"input": ""}])
async def test_a_clients_own_request_id_is_kept(
    asgi: httpx.AsyncClient, body: dict[str, Any]
) -> None:
    async def answered(sent: str) -> str:
        response = await asgi.post("/v1/audio/speech", json=body, headers={"x-request-id": sent})
        return response.headers["x-request-id"]

    assert await answered("turn-7:abc/DEF+9=") == "turn-7:abc/DEF+9="
    for unusable in ("", "x" * 129, "two words", "tab\there", '"quoted"'):
        assert (await answered(unusable)).startswith("req_")


async def test_unknown_keys_of_other_servers_are_ignored(asgi: httpx.AsyncClient) -> None:
    response = await asgi.post("/v1/audio/speech", json={"input": "a", "lang_code": "en"})
    assert response.status_code == 200


async def test_unknown_route_and_method(asgi: httpx.AsyncClient) -> None:
    missing = await asgi.get("/v1/nothing")
    assert missing.status_code == 404
    assert to_error(missing)["code"] == "not_found"
    wrong = await asgi.get("/v1/audio/speech")
    assert wrong.status_code == 405
    assert wrong.headers["allow"] == "POST"
    assert to_error(wrong)["code"] == "method_not_allowed"


async def test_huge_bodies_are_rejected(http: httpx.AsyncClient) -> None:
    announced = await http.post("/v1/audio/speech/batch", json={"input": "x" * (2 << 20)})
    assert announced.status_code == 413
    assert to_error(announced)["code"] == "body_too_large"

    async def pieces() -> AsyncIterator[bytes]:
        for _ in range(64):
            yield b" " * (64 << 10)

    chunked = await http.post(
        "/v1/audio/speech/batch",
        content=pieces(),
        headers={"content-type": "application/json"},
    )
    assert chunked.status_code == 413


async def test_overload_is_429_with_retry_after(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.capacity = 0
    response = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert response.status_code == 429
    assert response.headers["retry-after"] == "3"
    error = to_error(response)
    assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")


@pytest.mark.parametrize(
    ("error", "status", "code"),
    [
        (StageDied("the talker ended"), 503, "stage_died"),
        (RequestFailed("no end"), 500, "request_failed"),
        (ChunkTimeout("silent"), 500, "chunk_timeout"),
    ],
)
async def test_faults_before_the_first_sound_are_http_errors(
    server: Server, http: httpx.AsyncClient, error: Exception, status: int, code: str
) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 0, error
    response = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert response.status_code == status
    assert to_error(response)["code"] == code
    assert to_error(response)["message"] == str(error)
    await eventually(lambda: server.solo.counts.open == 0)


async def test_unforeseen_faults_show_nothing_of_their_own(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.solo.behaviour.fail_after = 0
    server.solo.behaviour.error = ZeroDivisionError("secret detail")
    response = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert response.status_code == 500
    error = to_error(response)
    assert error["code"] == "internal_error"
    assert "secret" not in response.text
    assert server.solo.counts.open == 0


async def test_a_break_after_the_first_sound_is_an_incomplete_body(
    server: Server, http: httpx.AsyncClient, caplog: pytest.LogCaptureFixture
) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 2, RequestFailed("broke")
    with pytest.raises(httpx.RemoteProtocolError):
        await http.post("/v1/audio/speech", json={"input": "hello"})
    assert server.solo.counts.open == 0
    # The server's own record says what broke; to uvicorn it is no error of the application.
    assert not [record for record in caplog.records if record.name.startswith("uvicorn")]
    server.solo.behaviour.fail_after = None
    again = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert again.status_code == 200
