"""Invalid requests over all routes: status, code and `param` of each; and how many there are.

What is here concerns every route alike or has no file of its own. The fields of speech, batches,
uploads, keys and messages have their tables beside their other tests; the last test counts all.
"""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import httpx
import pytest

from cantata.api.settings import ReferenceSettings, ServerSettings

SPEECH, BATCH, VOICES = "/v1/audio/speech", "/v1/audio/speech/batch", "/v1/audio/voices"
DEEPGRAM, ELEVENLABS = "/v1/speak", "/v1/text-to-speech/clara"
JSON, FORM = "application/json", "multipart/form-data; boundary=x"
INVALID, ROUTE, METHOD = "invalid_value", "not_found", "method_not_allowed"


@dataclass(frozen=True)
class Wrong:
    """A request and what is said of it."""

    method: str
    path: str
    status: int
    code: str
    param: str | None = None
    content: bytes | None = None
    kind: str | None = JSON
    """Its content type."""
    headers: dict[str, str] = field(default_factory=dict)


def body(path: str, content: bytes, param: str | None = None, **fields: Any) -> Wrong:
    return Wrong("POST", path, fields.pop("status", 400), INVALID, param, content, **fields)


def items(fragment: bytes) -> bytes:
    return b'{"requests": [{"custom_id": "a", "input": "a", ' + fragment + b"}]}"


ROUTES = [
    Wrong(method, path, 404, ROUTE)
    for method, path in (
        ("GET", "/v1"),
        ("GET", "/v1/"),
        ("GET", "/v2/audio/speech"),
        ("POST", "/v1/audio/speech/"),
        ("POST", "/v1/audio/speech/batch/x"),
        ("POST", "/v1/audio/speech%00"),
        ("POST", "/v1/audio/transcriptions"),
        ("POST", "/V1/AUDIO/SPEECH"),
        ("POST", "/v1//audio/speech"),
        ("GET", "/health/x"),
        ("GET", "/ready/"),
        ("GET", "/metrics/x"),
        ("GET", "/v1/audio/voices/clara/x"),
        ("GET", "/.env"),
        ("GET", "/%2e%2e/%2e%2e/etc/passwd"),
        ("GET", "/" + "a" * 4000),
        ("OPTIONS", "/v1/nothing"),
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
    Wrong("DELETE", f"{VOICES}/..%2f..%2fetc", 404, "voice_not_found", "voice"),
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
    body(SPEECH, b'{"input": "\\u0000"}', "input"),
    body(SPEECH, b'{"input": "\\udfff\\ud800"}', "input"),
    body(SPEECH, b'{"input": {"a": "b"}}', "input"),
    body(SPEECH, b'{"Input": "a"}', "input"),
    body(SPEECH, b'{"input": "[pause 99s]"}', "input"),
    body(SPEECH, b'{"input": "a", "speed": NaN}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": Infinity}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": -Infinity}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": 1e999}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": -0.0}', "speed"),
    body(SPEECH, b'{"input": "a", "speed": null}', "speed"),
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
    body(VOICES, b"", kind=None),
    body(VOICES, b"--x\r\n\r\n--x--", kind=FORM),
    body(VOICES, b"", kind="multipart/form-data; boundary=" + "b" * 5000),
]
OF_OTHERS = [
    body(DEEPGRAM, b'{"text": ""}', "text"),
    body(DEEPGRAM, b'{"text": 5}', "text"),
    body(DEEPGRAM, b'{"text": "\\ud800"}', "text"),
    body(DEEPGRAM, b"{}", "text"),
    body(DEEPGRAM, b"[" * 100_000),
    body(DEEPGRAM, b'{"text": "a"}', kind="text/plain"),
    body(DEEPGRAM + "?encoding=vorbis", b'{"text": "a"}', "encoding"),
    body(DEEPGRAM + "?encoding=mp3&container=wav", b'{"text": "a"}', "container"),
    body(DEEPGRAM + "?sample_rate=1", b'{"text": "a"}', "sample_rate"),
    body(DEEPGRAM + "?sample_rate=NaN", b'{"text": "a"}', "sample_rate"),
    body(DEEPGRAM + "?speed=inf", b'{"text": "a"}', "speed"),
    body(DEEPGRAM + "?bit_rate=0", b'{"text": "a"}', "bit_rate"),
    body(ELEVENLABS, b'{"text": null}', "text"),
    body(ELEVENLABS, b'{"text": "a", "voice_settings": {"speed": 9}}', "voice_settings"),
    body(ELEVENLABS, b'{"text": "a", "seed": -1}', "seed"),
    body(ELEVENLABS + "?output_format=mp3_0_0", b'{"text": "a"}', "output_format"),
    body(ELEVENLABS + "?output_format=", b'{"text": "a"}', "output_format"),
    body(ELEVENLABS + "/stream", b"{"),
    body(ELEVENLABS + "/with-timestamps", b'{"text": ""}', "text"),
    body(ELEVENLABS + "/stream/with-timestamps", b"[]"),
    Wrong("GET", DEEPGRAM, 405, METHOD),
    Wrong("DELETE", ELEVENLABS, 405, METHOD),
    Wrong("GET", "/v1/voices/nobody", 400, "voice_not_found"),
    Wrong("POST", "/v2/voices", 405, METHOD),
]
LARGE = [
    Wrong("POST", path, 413, "body_too_large", None, b" " * (1 << 20) + b"{}")
    for path in (BATCH, DEEPGRAM, ELEVENLABS, ELEVENLABS + "/stream")
]
TABLE = [*ROUTES, *METHODS, *NAMES, *NO_JSON, *VALUES, *OF_OTHERS, *LARGE]


@pytest.fixture
def settings(tmp_path: Path) -> ServerSettings:
    return ServerSettings(references=ReferenceSettings(voices_dir=tmp_path))


async def answer_to(http: httpx.AsyncClient, wrong: Wrong) -> httpx.Response:
    headers = {**wrong.headers, **({"content-type": wrong.kind} if wrong.kind else {})}
    return await http.request(wrong.method, wrong.path, content=wrong.content, headers=headers)


async def test_every_refusal_says_what_is_wrong(asgi: httpx.AsyncClient) -> None:
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
    """Code and param, in whoever's words."""
    if wrong.method == "HEAD":
        return wrong.code, wrong.param
    try: answered = answer.json()
    except Exception: return answer.text, None
    if "error" not in answered: return str(answered), None
    return answered["error"]["code"], answered["error"]["param"]
