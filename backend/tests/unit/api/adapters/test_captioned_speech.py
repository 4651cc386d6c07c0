"""Kokoro-FastAPI's captioned speech."""

from __future__ import annotations

import base64
import json
from dataclasses import replace
from typing import Any

import httpx
import pytest
from fake_service import expected_pcm
from live_server import Server

from cantata.audio.pcm import encode_s16le

PATH = "/dev/captioned_speech"
TEXT = "hello there"


async def captioned(http: httpx.AsyncClient, **fields: Any) -> list[dict[str, Any]]:
    body = {"input": TEXT, "response_format": "pcm", **fields}
    answer = await http.post(PATH, json=body)
    assert answer.status_code == 200, answer.text
    kind = "x-ndjson" if fields.get("stream", True) else "json"
    assert answer.headers["content-type"] == f"application/{kind}"
    return [json.loads(line) for line in answer.text.splitlines()]


def spoken(server: Server) -> bytes:
    return encode_s16le(expected_pcm(TEXT, server.solo.behaviour))


def sound_of(lines: list[dict[str, Any]]) -> bytes:
    return b"".join(base64.b64decode(line["audio"]) for line in lines)


async def test_sound_and_words_come_line_by_line(server: Server, http: httpx.AsyncClient) -> None:
    lines = await captioned(http, model="kokoro", lang_code="a", normalization_options={})
    assert len(lines) > 1
    assert sound_of(lines) == spoken(server)
    assert {line["audio_format"] for line in lines} == {"audio/pcm"}
    words = [word for line in lines for word in line["timestamps"]]
    assert [word["word"] for word in words] == TEXT.split()
    times = [time for word in words for time in (word["start_time"], word["end_time"])]
    assert times == sorted(times)


async def test_one_object_without_streaming(server: Server, http: httpx.AsyncClient) -> None:
    (whole,) = await captioned(http, stream=False, speed=1.5, seed=3)
    assert sound_of([whole]) == spoken(server)
    assert [word["word"] for word in whole["timestamps"]] == TEXT.split()
    (request,) = server.solo.counts.requests
    assert (request.speed, request.seed) == (1.5, 3)


async def test_without_timestamps(http: httpx.AsyncClient) -> None:
    lines = await captioned(http, return_timestamps=False)
    assert {line["timestamps"] for line in lines} == {None}


@pytest.mark.parametrize(
    ("voice", "own"),
    [
        ("ben", "ben"),
        ("onyx", "ben"),
        ("af_bella", "clara"),
        ("bf_emma(2)+af_sky(1)", "clara"),
        ("am_adam", "clara"),  # no voice here says that it is male
        (None, "clara"),
    ],
)
async def test_voices(server: Server, http: httpx.AsyncClient, voice: str | None, own: str) -> None:
    await captioned(http, voice=voice)
    (request,) = server.solo.counts.requests
    assert request.voice == own


async def test_a_voice_of_its_gender(server: Server, http: httpx.AsyncClient) -> None:
    clara, ben = server.solo.voices
    server.solo.voices = (clara, replace(ben, gender="male"))
    for voice, own in (("am_adam", "ben"), ("bf_emma", "clara")):
        await captioned(http, voice=voice, model="tts-1")
        assert server.solo.counts.requests[-1].voice == own


@pytest.mark.parametrize(
    ("fields", "code"),
    [
        ({"voice": "bob"}, "voice_not_found"),
        ({"model": "bark"}, "model_not_found"),
        ({"input": ""}, None),
        ({"response_format": "m4a"}, None),
    ],
)
async def test_wrong_requests(
    http: httpx.AsyncClient, fields: dict[str, str], code: str | None
) -> None:
    answer = await http.post(PATH, json={"input": TEXT, **fields})
    assert answer.status_code in (400, 404), answer.text
    error = answer.json()["error"]
    assert error["message"]
    if code is not None:
        assert error["code"] == code
