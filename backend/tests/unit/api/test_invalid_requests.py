"""Invalid requests on all routes: status, code and `param` of each; and how many there are.

The cases here concern every route or have no file of their own. The fields of speech, batches,
uploads, keys and messages have tables beside their other tests; the last test counts all.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
from dataclasses import dataclass
from pathlib import Path

import httpx
import pytest
import test_chat_errors
import test_speech_batch
import test_speech_errors
import test_speech_websocket_errors
import test_voices
from live_server import Server
from socket_client import client

from cantata.api.settings import ReferenceSettings, ServerSettings

SPEECH, BATCH, VOICES = "/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"
DEEPGRAM, ELEVENLABS = "/v1/speak", "/v1/text-to-speech/clara"
JSON, FORM = "application/json", "multipart/form-data; boundary=x"
INVALID, ROUTE, METHOD = "invalid_value", "not_found", "method_not_allowed"


@dataclass(frozen=True)
class Wrong:
    """A request and its expected error."""

    method: str
    path: str
    status: int
    code: str
    param: str | None = None
    content: bytes | None = None
    kind: str | None = JSON
    """Its content type."""


def body(
    path: str,
    content: bytes,
    param: str | None = None,
    kind: str | None = JSON,
    code: str = INVALID,
) -> Wrong:
    return Wrong("POST", path, 400, code, param, content, kind)


def items(fragment: bytes) -> bytes:
    return b'{"requests": [{"custom_id": "a", "input": "a", ' + fragment + b"}]}"


ROUTES = [
    Wrong(method, path, 404, ROUTE)
    for method, path in (
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("GET", "/v2/audio/speech"),
        ("POST", "/v1/audio/speech/batch/x"),
        ("POST", "/v1/audio/speech%00"),
        ("POST", "/v1/audio/transcripts"),
        ("POST", "/V1/AUDIO/SPEECH"),
        ("GET", "/health/x"),
        ("GET", "/ready/x"),
        ("GET", "/metrics/x"),
        ("GET", "/v1/audio/voices/clara/x"),
        ("GET", "/.env"),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd"),
        ("GET", "/" + "a" * 4000),
        ("OPTIONS", "/v1/nothing"),
        ("DELETE", "/v1/audio/voices/..%2f..%2fetc"),
    )
]
METHODS = [
    Wrong(method, path, 405, METHOD)
    for path, methods in {
        SPEECH: ("GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD", "TRACE", "BREW"),
        BATCH: ("GET", "PUT", "DELETE"),
        VOICES: ("PUT", "DELETE"),
        f"{VOICES}/clara": ("GET", "POST", "PUT"),
        "/v1/models": ("POST", "DELETE"),
        "/v1/models/solo": ("POST", "DELETE"),
        "/v1/audio/models": ("POST",),
        "/health": ("POST", "DELETE"),
        "/ready": ("POST", "PUT"),
        "/metrics": ("POST",),
    }.items()
    for method in methods
]
NAMES = [
    Wrong("GET", "/v1/models/gpt-9", 404, "model_not_found", "model"),
    Wrong("GET", "/v1/models/solo/x", 404, "model_not_found", "model"),
    Wrong("GET", "/v1/models/%00", 404, "model_not_found", "model"),
    Wrong("GET", "/v1/models/%ff", 404, "model_not_found", "model"),
    Wrong("GET", "/v1/models/SOLO", 404, "model_not_found", "model"),
    Wrong("GET", f"{VOICES}?model=gpt-9", 404, "model_not_found", "model"),
    Wrong("GET", f"{VOICES}?model=", 404, "model_not_found", "model"),
    Wrong("GET", f"{VOICES}?model=%F0%9F%98%80", 404, "model_not_found", "model"),
    Wrong("DELETE", f"{VOICES}/nobody", 404, "voice_not_found", "voice"),
    Wrong("DELETE", f"{VOICES}/%2e%2e", 404, "voice_not_found", "voice"),
    Wrong("DELETE", f"{VOICES}/%00", 404, "voice_not_found", "voice"),
    Wrong("DELETE", f"{VOICES}/" + "a" * 300, 404, "voice_not_found", "voice"),
]
NO_JSON = [
    body(path, content, kind=kind)
    for path in (SPEECH, BATCH)
    for content, kind in (
        (b'{"input": "a"}', None),
        (b'{"input": "a"}', "text/plain"),
        (b'{"input": "a"}', "application/xml"),
        (b"input=a", "application/x-www-form-urlencoded"),
        (b"--x--", FORM),
        (b'{"input": "a"}', "application/octet-stream"),
        (b"", JSON),
        (b"null", JSON),
        (b"true", JSON),
        (b"1e999", JSON),
        (b'"a"', JSON),
        (b"{input: 'a'}", JSON),
        (b'{"input": "a",}', JSON),
        (b'{"input": "a"} {"input": "b"}', JSON),
        (b'{"input": "a\nb"}', JSON),
        (b'{"input": "a\x00b"}', JSON),
        (b'{"input": "\xe4"}', JSON),
        (b"\x00\x01\x02", JSON),
        (b"\x1f\x8b\x08\x00", JSON),
        (b"[" * 100_000, JSON),
        (b'{"input":' * 50_000, JSON),
        (b'{"seed": 1' + b"0" * 5000 + b"}", JSON),
    )
]
VALUES = [
    body(SPEECH, b'{"input": "a", "input": ""}', "input"),
    body(SPEECH, b'{"input": "\\u4f60"}', "input"),
    body(SPEECH, b'{"input": "\\udfff\\ud800"}', "input"),
    body(SPEECH, b'{"input": {"a": "b"}}', "input"),
    body(SPEECH, b'{"Input": "a"}', "input"),
    body(SPEECH, b'{"input": "a", "speed": NaN}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": Infinity}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": -Infinity}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": 1e999}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": -0.0}', "speed"),
    body(SPEECH, b'{"input": null}', "input"),
    body(SPEECH, b'{"input": "a", "temperature": NaN}', "temperature"),
    body(SPEECH, b'{"input": "a", "temperature": 2.0000001}', "temperature"),
    body(SPEECH, b'{"input": "a", "seed": 9223372036854775808}', "seed"),
    body(SPEECH, b'{"input": "a", "seed": 1e3}', "seed"),
    body(SPEECH, b'{"input": "a", "seed": true}', "seed"),
    body(SPEECH, b'{"input": "a", "model": ""}', "model"),
    body(SPEECH, b'{"input": "a", "model": "\\ud800"}', "model"),
    body(SPEECH, b'{"input": "a", "model": ["solo"]}', "model"),
    body(SPEECH, json.dumps({"input": "a", "model": "m" * 257}).encode(), "model"),
    body(SPEECH, b'{"input": "a", "voice": []}', "voice"),
    body(SPEECH, b'{"input": "a", "voice": {"id": 5}}', "voice"),
    body(SPEECH, b'{"input": "a", "voice": {"id": "\\ud800"}}', "voice"),
    body(SPEECH, b'{"input": "a", "ref_audio": "data:audio/wav;base64,AAAA"}', "ref_audio"),
    body(SPEECH, b'{"input": "a", "ref_text": 5}', "ref_text"),
    body(SPEECH, b'{"input": "a", "timestamps": 1}', "timestamps"),
    body(SPEECH, b'{"input": "a", "instructions": "\\udc00"}', "instructions"),
    body(BATCH, items(b'"speed": NaN'), "requests[0].speed"),
    body(BATCH, items(b'"seed": 1e999'), "requests[0].seed"),
    body(BATCH, items(b'"input": "\\ud800"'), "requests[0].input"),
    body(BATCH, items(b'"custom_id": 5'), "requests[0].custom_id"),
    body(BATCH, items(b'"voice": {"id": ""}'), "requests[0].voice"),
    body(BATCH, items(b'"temperature": "0"'), "requests[0].temperature"),
    body(BATCH, b'{"requests": {"0": {"custom_id": "a", "input": "a"}}}', "requests"),
    body(BATCH, b'{"requests": [null]}', "requests[0]"),
    body(BATCH, b'{"requests": [[[]]]}', "requests[0]"),
    body(VOICES, b"", "name", kind=None),
    body(VOICES, b"--x\r\n\r\n--x--", kind=FORM),
    body(VOICES, b"", kind="multipart/form-data; boundary=" + "b" * 5000),
]
DEEPGRAMS = [
    body(DEEPGRAM + query, content, says, code="Bad Request")
    for query, content, says in (
        ("", b'{"text": ""}', "empty"),
        ("", b'{"text": 5}', "text"),
        ("", b'{"text": "\\ud800"}', "text"),
        ("", b"{}", "text"),
        ("", b"[" * 100_000, "nested too deeply"),
        ("", b"", "JSON object"),
        ("?encoding=vorbis", b'{"text": "a"}', "encoding"),
        ("?encoding=mp3&container=wav", b'{"text": "a"}', "container"),
        ("?sample_rate=1", b'{"text": "a"}', "sample_rate"),
        ("?sample_rate=NaN", b'{"text": "a"}', "sample_rate"),
        ("?speed=inf", b'{"text": "a"}', "speed"),
        ("?bit_rate=0", b'{"text": "a"}', "bit_rate"),
        ("?model=nobody", b'{"text": "a"}', "no voice 'nobody'"),
        ("?model=", b'{"text": "a"}', "model"),
    )
]
ELEVENLABSES = [
    body(ELEVENLABS + rest, content, says)
    for rest, content, says in (
        ("", b'{"text": null}', "text"),
        ("", b'{"text": "a", "voice_settings": {"speed": 9}}', "voice_settings"),
        ("", b'{"text": "a", "seed": -1}', "seed"),
        ("?output_format=mp3_0_0", b'{"text": "a"}', "cannot have sample_rate 0"),
        ("?output_format=", b'{"text": "a"}', "output_format"),
        ("/stream", b"{", "not valid JSON"),
        ("/with-timestamps", b'{"text": ""}', "empty"),
        ("/stream/with-timestamps", b"[]", "JSON object"),
    )
]
OF_OTHERS = [
    Wrong("GET", DEEPGRAM, 405, "Bad Request", "method not allowed"),
    Wrong("DELETE", ELEVENLABS, 405, METHOD, "method not allowed"),
    Wrong("GET", "/v1/voices/nobody", 400, "voice_not_found", "no voice 'nobody'"),
    Wrong("POST", "/v2/voices", 405, METHOD, "method not allowed"),
    Wrong("POST", DEEPGRAM, 413, "PAYLOAD_TOO_LARGE", "larger than", b" " * (1 << 20) + b"{}"),
    Wrong("POST", ELEVENLABS, 413, "body_too_large", "larger than", b" " * (1 << 20) + b"{}"),
]
LARGE = [Wrong("POST", BATCH, 413, "body_too_large", None, b" " * (1 << 20) + b"{}")]
TABLE = [
    *ROUTES,
    *METHODS,
    *NAMES,
    *NO_JSON,
    *VALUES,
    *DEEPGRAMS,
    *ELEVENLABSES,
    *OF_OTHERS,
    *LARGE,
]
HEAD = b"POST /v1/audio/speech HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
NO_HTTP = {
    "TLS": b"\x16\x03\x01\x02\x00\x01\r\n\r\n",
    "half a line": b"GET\r\n\r\n",
    "no host": b"GET /health HTTP/1.1\r\n\r\n",
    "a path with a zero": b"GET /health\x00 HTTP/1.1\r\nhost: a\r\n\r\n",
    "a name with a zero": b"GET /health HTTP/1.1\r\nhost: a\r\nx\x00y: 1\r\n\r\n",
    "a value with a line": b"GET /health HTTP/1.1\r\nhost: a\r\nx: a\rb\r\n\r\n",
    "negative length": HEAD + b"content-length: -5\r\n\r\n",
    "no length": HEAD + b"content-length: five\r\n\r\n",
    "two lengths": HEAD + b"content-length: 2\r\ncontent-length: 3\r\n\r\n{}",
    "no chunks": HEAD + b"transfer-encoding: chunked\r\n\r\nzz\r\n",
    "unknown coding": HEAD + b"transfer-encoding: brotli\r\n\r\n",
    "a long header": b"GET /health HTTP/1.1\r\nhost: a\r\nx: " + b"a" * (1 << 20),
    "many headers": b"GET /health HTTP/1.1\r\nhost: a\r\n" + b"x: y\r\n" * 100_000,
    "a long address": b"GET /" + b"a" * (1 << 20),
    "a socket without a key": b"GET /v1/audio/speech/stream HTTP/1.1\r\nhost: 127.0.0.1\r\n"
    b"connection: upgrade\r\nupgrade: websocket\r\n\r\n",
}


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(references=ReferenceSettings(voices_dir=tmp_path))


async def answer_to(http: httpx.AsyncClient, wrong: Wrong) -> httpx.Response:
    headers = {"content-type": wrong.kind} if wrong.kind else {}
    return await http.request(wrong.method, wrong.path, content=wrong.content, headers=headers)


async def test_every_error_says_what_is_wrong(asgi: httpx.AsyncClient) -> None:
    unexpected = []
    for wrong in TABLE:
        answer = await answer_to(asgi, wrong)
        assert answer.headers["x-request-id"].startswith("req_")
        assert len(answer.content) < 10_000
        got = (answer.status_code, *told(wrong, answer))
        if got != (wrong.status, wrong.code, wrong.param):
            unexpected.append((wrong.method, wrong.path[:60], (wrong.content or b"")[:60], got))
    assert not unexpected, "\n".join(map(str, unexpected))


def told(wrong: Wrong, answer: httpx.Response) -> tuple[str, str | None]:
    """Code and param; other services have no param, so part of their message."""
    if wrong.method == "HEAD":
        return wrong.code, wrong.param
    answered = answer.json()
    if "error" in answered:
        error = answered["error"]
        return error["code"], error["param"]
    error = answered.get("detail", answered)
    message = error.get("message") or error["err_msg"]
    says = wrong.param if wrong.param and wrong.param in message else message
    return error.get("status") or error["err_code"], says


@pytest.mark.parametrize("sent", NO_HTTP.values(), ids=NO_HTTP.keys())
async def test_invalid_http_is_rejected_and_the_connection_closed(
    server: Server, sent: bytes
) -> None:
    """Rejected by uvicorn, before any protocol's error format applies."""
    host, port = server.url.removeprefix("http://").split(":")
    reader, writer = await asyncio.open_connection(host, int(port))
    writer.write(sent)
    async with asyncio.timeout(60):
        head = await reader.readline()
        with contextlib.suppress(ConnectionError):  # it may close with much of this unread
            while await reader.read(1 << 16):
                pass
    writer.close()
    assert head.startswith(b"HTTP/1.1 400 "), head
    async with client(server.socket_url) as c:
        await c.configure()
        await c.speak("still well")


def test_how_many_invalid_requests_are_tried() -> None:
    counts = {
        "every route": len(TABLE),
        "no HTTP": len(NO_HTTP),
        "speech": len(test_speech_errors.BAD_REQUESTS),
        "chat": len(test_chat_errors.BAD_BODIES),
        "batches": len(test_speech_batch.BAD_BATCHES),
        "uploads": len(test_voices.CASES),
        "recordings": len(test_voices.REFERENCES),
        "messages": len(test_speech_websocket_errors.BAD_MESSAGES),
    }
    assert sum(counts.values()) >= 300, counts
