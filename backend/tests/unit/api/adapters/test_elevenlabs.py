"""ElevenLabs' text to speech over HTTP."""

from __future__ import annotations

import base64
import io
import json
from typing import Any

import av
import httpx
import pytest
from fake_service import expected_pcm
from live_server import Server

from cantata.audio.pcm import encode_s16le

CLOUD_VOICE = "hpp4J3VqNfWAUOO0d1Us"


def spoken(server: Server, text: str) -> bytes:
    return encode_s16le(expected_pcm(text, server.solo.behaviour))


@pytest.mark.parametrize("route", ["", "/stream"])
async def test_one_text(server: Server, http: httpx.AsyncClient, route: str) -> None:
    body = {
        "text": "hello",
        "model_id": "eleven_turbo_v2_5",
        "voice_settings": {"stability": 0.5, "speed": 1.1},
        "seed": 3,
    }
    path = f"/v1/text-to-speech/ben{route}"
    answer = await http.post(path, params={"output_format": "pcm_24000"}, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.content == spoken(server, "hello")
    (request,) = server.solo.counts.requests
    assert (request.voice, request.speed, request.seed) == ("ben", 1.1, 3)


@pytest.mark.parametrize(
    ("output_format", "media_type", "codec", "rate"),
    [
        (None, "audio/mpeg", "mp3float", 44_100),
        ("mp3_22050_32", "audio/mpeg", "mp3float", 22_050),
        ("opus_48000_64", "audio/ogg", "opus", 48_000),
        ("wav_16000", "audio/wav", "pcm_s16le", 16_000),
    ],
)
async def test_formats(
    http: httpx.AsyncClient, output_format: str | None, media_type: str, codec: str, rate: int
) -> None:
    query = {"output_format": output_format} if output_format else {}
    path = f"/v1/text-to-speech/{CLOUD_VOICE}"
    answer = await http.post(path, params=query, json={"text": "hello there"})
    assert answer.headers["content-type"] == media_type
    with av.open(io.BytesIO(answer.content), "r") as file:
        stream = file.streams.audio[0]
        assert (stream.codec_context.name, stream.codec_context.sample_rate) == (codec, rate)
        assert sum(frame.samples for frame in file.decode(stream)) > 0.2 * rate


async def test_ulaw_has_a_byte_for_each_sample(http: httpx.AsyncClient) -> None:
    query = {"output_format": "ulaw_8000"}
    answer = await http.post("/v1/text-to-speech/clara", params=query, json={"text": "hello"})
    assert len(answer.content) == pytest.approx(5 * 480 / 3, abs=2)


async def test_lines_with_timestamps(server: Server, http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/v1/text-to-speech/clara/stream/with-timestamps",
        params={"output_format": "pcm_24000"},
        json={"text": "Hello there."},
    )
    lines = [json.loads(line) for line in answer.text.splitlines()]
    sound = b"".join(base64.b64decode(line["audio_base64"]) for line in lines)
    assert sound == spoken(server, "Hello there.")
    told = [line["alignment"] for line in lines if line["alignment"]]
    assert "".join("".join(one["characters"]) for one in told) == "Hello there. "
    starts = [at for one in told for at in one["character_start_times_seconds"]]
    # The fake speaks a character in 20 ms.
    assert starts == pytest.approx([0.02 * place for place in range(13)], abs=0.002)


async def test_all_of_it_with_timestamps(server: Server, http: httpx.AsyncClient) -> None:
    answer = await http.post(
        "/v1/text-to-speech/clara/with-timestamps",
        params={"output_format": "pcm_24000"},
        json={"text": "Hello there."},
    )
    body = answer.json()
    assert base64.b64decode(body["audio_base64"]) == spoken(server, "Hello there.")
    alignment = body["alignment"]
    assert alignment == body["normalized_alignment"]
    assert "".join(alignment["characters"]) == "Hello there."
    assert alignment["character_end_times_seconds"][-1] == pytest.approx(0.24, abs=0.002)


async def test_voices_are_listed(http: httpx.AsyncClient) -> None:
    listed = (await http.get("/v1/voices")).json()["voices"]
    assert [voice["voice_id"] for voice in listed][:2] == ["clara", "ben"]
    assert {voice["category"] for voice in listed} == {"premade"}
    page = (await http.get("/v2/voices")).json()
    assert (page["has_more"], page["total_count"]) == (False, len(listed))
    assert (await http.get("/v1/voices/onyx")).json()["voice_id"] == "ben"


@pytest.mark.parametrize(
    ("voice", "query", "body", "status", "code"),
    [
        ("nobody", {}, {"text": "x"}, 400, "voice_not_found"),
        ("clara", {"output_format": "mp3"}, {"text": "x"}, 400, "invalid_value"),
        ("clara", {"output_format": "mp3_9999_1"}, {"text": "x"}, 400, "invalid_value"),
        ("clara", {}, {}, 400, "invalid_value"),
        ("clara", {}, {"text": "x" * 300}, 400, "invalid_value"),
        ("clara", {}, {"text": "x", "model_id": "gpt"}, 404, "model_not_found"),
    ],
)
async def test_errors_are_elevenlabs(
    http: httpx.AsyncClient,
    voice: str,
    query: dict[str, str],
    body: dict[str, Any],
    status: int,
    code: str,
) -> None:
    answer = await http.post(f"/v1/text-to-speech/{voice}/stream", params=query, json=body)
    assert (answer.status_code, answer.json()["detail"]["status"]) == (status, code)
    assert answer.json()["detail"]["message"]
