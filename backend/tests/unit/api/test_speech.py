"""POST /v1/audio/speech: what is sent, when, and what remains afterwards."""

from __future__ import annotations

import asyncio
import base64
import io
import json
import re
import time
import wave
from pathlib import Path
from socket import SO_RCVBUF, SOL_SOCKET
from typing import Any

import av
import httpx
import numpy as np
import openai
import pytest
import soundfile
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running, until_still

from cantata.api.settings import Provenance, ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import Voice
from cantata.media.certificates import write_trial_certificate
from cantata.media.provenance import find_provenance
from cantata.media.signing import SigningFiles


def decoded(content: bytes) -> tuple[str, int, int]:
    """Codec, Hz and channels of a file, all of which can be decoded."""
    with av.open(io.BytesIO(content), "r") as file:
        stream = file.streams.audio[0]
        assert sum(frame.samples for frame in file.decode(stream)) > 0
        return stream.codec_context.name, stream.rate, stream.channels


def fetch_pcm(server: Server, text: str) -> bytes:
    return encode_s16le(expected_pcm(text, server.solo.behaviour))


async def test_pcm_is_every_sample_once(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": "hello there", "response_format": "pcm"}
    response = await http.post("/v1/audio/speech", json=body)
    assert response.status_code == 200
    assert response.content == fetch_pcm(server, "hello there")
    assert response.headers["content-type"] == "audio/pcm"
    assert response.headers["x-sample-rate"] == "24000"
    assert response.headers["x-channels"] == "1"
    assert response.headers["transfer-encoding"] == "chunked"
    assert response.headers["x-request-id"].startswith("req_")
    assert server.solo.counts.finished == 1


async def test_a_voice_finds_its_model_where_none_is_named(
    server: Server, http: httpx.AsyncClient
) -> None:
    """The default model comes first, then uploaded voices, then other models."""
    duo = server.service.duo
    duo.voices = (*duo.voices, Voice("ella", "Ella"))

    async def speak(**fields: str) -> int:
        answer = await http.post("/v1/audio/speech", json={"input": "hi", **fields})
        return answer.status_code

    for number, fields in enumerate(({}, {"model": "tts-1"}, {"model": "duo"}), 1):
        assert await speak(voice="ella", **fields) == 200
        assert (server.solo.counts.started, duo.counts.started) == (0, number)
    assert await speak(voice="ella", model="solo") == 400
    assert await speak(voice="clara") == 200
    assert (server.solo.counts.started, duo.counts.started) == (1, 3)


async def test_options_reach_the_model(server: Server, http: httpx.AsyncClient) -> None:
    body = {
        "input": "hi",
        "model": "tts-1",
        "voice": {"id": "onyx"},
        "speed": 2,
        "seed": 7,
        "temperature": 0.5,
        "instructions": "calmly",
    }
    assert (await http.post("/v1/audio/speech", json=body)).status_code == 200
    (request,) = server.solo.counts.requests
    assert (request.text, request.voice, request.speed) == ("hi", "ben", 2.0)
    assert (request.seed, request.temperature, request.instructions) == (7, 0.5, "calmly")


async def test_an_absent_format_is_mp3(server: Server, http: httpx.AsyncClient) -> None:
    response = await http.post("/v1/audio/speech", json={"input": "hello"})
    assert response.headers["content-type"] == "audio/mpeg"
    assert decoded(response.content) == ("mp3float", 24_000, 1)


@pytest.mark.parametrize(
    ("response_format", "media_type", "codec"),
    [
        ("mp3", "audio/mpeg", "mp3float"),
        ("opus", "audio/ogg", "opus"),
        ("aac", "audio/aac", "aac"),
        ("flac", "audio/flac", "flac"),
        ("wav", "audio/wav", "pcm_s16le"),
    ],
)
@pytest.mark.parametrize("sample_rate", [None, 8_000, 48_000])
async def test_formats_and_rates_are_what_the_headers_say(
    http: httpx.AsyncClient,
    response_format: str,
    media_type: str,
    codec: str,
    sample_rate: int | None,
) -> None:
    body = {"input": "hello", "response_format": response_format, "sample_rate": sample_rate}
    response = await http.post("/v1/audio/speech", json=body)
    assert response.headers["content-type"] == media_type
    sent = int(response.headers["x-sample-rate"])
    assert sent == sample_rate or (sample_rate is None and sent == 24_000)
    # Opus is always decoded at 48 kHz.
    assert decoded(response.content) == (codec, 48_000 if codec == "opus" else sent, 1)


async def test_pcm_at_another_rate_is_all_of_it(http: httpx.AsyncClient) -> None:
    body = {"input": "hello", "response_format": "pcm", "sample_rate": 8_000}
    response = await http.post("/v1/audio/speech", json=body)
    assert response.headers["x-sample-rate"] == "8000"
    assert len(response.content) == 2 * 5 * 480 // 3


async def test_a_long_piece_is_encoded_without_holding_up_the_loop(
    server: Server, http: httpx.AsyncClient
) -> None:
    server.solo.behaviour.chunks, server.solo.behaviour.chunk_samples = 1, 24_000 * 60
    turns = 0

    async def watch() -> None:
        nonlocal turns
        while True:
            await asyncio.sleep(0.005)
            turns += 1

    watching = asyncio.create_task(watch())
    response = await http.post("/v1/audio/speech", json={"input": "x"})
    watching.cancel()
    assert len(response.content) > 400_000
    # Most of this time is the encoder's: half a second on a slow machine.
    assert turns > 10


async def test_instructions_are_ignored_aloud_where_no_model_follows_them(
    server: Server, http: httpx.AsyncClient
) -> None:
    body = {"input": "hi", "instructions": "calmly", "response_format": "pcm"}
    ignored = await http.post("/v1/audio/speech", json={**body, "model": "duo"})
    assert (ignored.status_code, ignored.headers["x-ignored"]) == (200, "instructions")
    assert server.service.duo.counts.requests[-1].instructions is None
    followed = await http.post("/v1/audio/speech", json=body)
    assert "x-ignored" not in followed.headers
    without = await http.post("/v1/audio/speech", json={"input": "hi", "model": "duo"})
    assert "x-ignored" not in without.headers


async def test_a_wav_is_one_that_libraries_read(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": "hello", "response_format": "wav"}
    content = (await http.post("/v1/audio/speech", json=body)).content
    expected = np.frombuffer(fetch_pcm(server, "hello"), dtype="<i2")
    samples, rate = soundfile.read(io.BytesIO(content), dtype="int16")
    assert rate == 24000
    np.testing.assert_array_equal(samples, expected)
    with wave.open(io.BytesIO(content)) as file:
        assert (file.getnchannels(), file.getsampwidth(), file.getframerate()) == (1, 2, 24000)
        assert file.readframes(len(expected)) == expected.tobytes()


async def test_stereo_is_interleaved(server: Server, http: httpx.AsyncClient) -> None:
    body = {"input": "hello", "model": "duo", "response_format": "wav"}
    response = await http.post("/v1/audio/speech", json=body)
    assert response.headers["x-channels"] == "2"
    samples, rate = soundfile.read(io.BytesIO(response.content), dtype="int16")
    expected = expected_pcm("hello", server.service.duo.behaviour, 2)
    assert rate == 48000
    np.testing.assert_array_equal(samples.ravel(), np.frombuffer(encode_s16le(expected), "<i2"))


async def test_sound_arrives_while_it_is_made(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.interval_s = 0.02
    body = {"input": "x" * 10, "response_format": "pcm"}
    async with http.stream("POST", "/v1/audio/speech", json=body) as response:
        pieces = response.aiter_raw()
        await anext(pieces)
        assert server.solo.counts.chunks < 8
        assert server.solo.counts.open == 1
        assert len([piece async for piece in pieces]) > 3


@pytest.mark.parametrize("chunks", [0, 5])
async def test_disconnect_aborts_and_waits_for_it(server: Server, chunks: int) -> None:
    how = server.solo.behaviour
    how.interval_s, how.abort_s, how.chunks = 0.01, 0.05, 1000
    how.first_after_s = 10.0 if chunks == 0 else 0.0
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as client:
        request = client.build_request("POST", "/v1/audio/speech", json={"input": "hello"})
        asking = asyncio.create_task(client.send(request, stream=True))
        await eventually(lambda: server.solo.counts.open == 1)
        await eventually(lambda: server.solo.counts.chunks >= chunks)
        if chunks:
            await (await asking).aclose()
        asking.cancel()
        await asyncio.wait([asking])
    await eventually(lambda: server.solo.counts.open == 0)
    assert server.solo.counts.aborted == 1
    assert server.solo.counts.abort_interrupted == 0
    assert server.solo.counts.chunks < 1000


@pytest.mark.parametrize("stream_format", ["audio", "sse"])
@pytest.mark.parametrize("response_format", ["mp3", "opus", "aac", "flac", "wav", "pcm"])
async def test_a_slow_reader_holds_back_the_utterance(
    response_format: str, stream_format: str
) -> None:
    service = FakeService()
    service.solo.behaviour.chunks = 10_000
    body = {"input": "x", "response_format": response_format, "stream_format": stream_format}
    small = httpx.AsyncHTTPTransport(socket_options=[(SOL_SOCKET, SO_RCVBUF, 4096)])
    async with (
        running(service, small_buffers=True) as server,
        httpx.AsyncClient(transport=small, base_url=server.url, timeout=60) as client,
        client.stream("POST", "/v1/audio/speech", json=body) as response,
    ):
        pieces = response.aiter_raw(1024)
        await anext(pieces)
        await until_still(lambda: service.solo.counts.chunks)
        assert service.solo.counts.open == 1
        assert service.solo.counts.chunks < 5_000
    await eventually(lambda: service.solo.counts.open == 0)


async def test_a_reader_that_stalls_loses_its_place() -> None:
    service = FakeService()
    service.solo.behaviour.chunks = 10_000
    settings = ServerSettings(stall_timeout_s=0.3)
    body = {"input": "x", "response_format": "pcm"}
    async with running(service, settings) as server:
        await eventually(lambda: service.ready)
        async with (
            httpx.AsyncClient(base_url=server.url, timeout=60) as client,
            client.stream("POST", "/v1/audio/speech", json=body) as response,
        ):
            pieces = response.aiter_raw(1024)
            await anext(pieces)
            await eventually(lambda: service.solo.counts.aborted == 1)
            with pytest.raises(httpx.RemoteProtocolError):
                async for _ in pieces:
                    pass


@pytest.mark.parametrize("response_format", ["pcm", "mp3"])
async def test_the_head_tells_where_the_time_went(
    server: Server, http: httpx.AsyncClient, response_format: str
) -> None:
    server.solo.behaviour.first_after_s = 0.05
    body = {"input": "hello", "response_format": response_format}
    asked_s = time.monotonic()
    timing = (await http.post("/v1/audio/speech", json=body)).headers["server-timing"]
    elapsed_ms = (time.monotonic() - asked_s) * 1000
    steps = {
        name: float(dur) for name, dur in re.findall(r"([a-z]+);dur=([0-9.]+)(?:, |$)", timing)
    }
    assert list(steps) == ["order", "text", "admit", "talker", "deliver", "encode"]
    assert steps["talker"] >= 49
    assert sum(steps.values()) <= elapsed_ms + 1


async def test_concurrent_requests_do_not_mix(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.interval_s = 0.002
    texts = [f"this is text number {number}" for number in range(12)]

    async def speak(text: str) -> bytes:
        body = {"input": text, "response_format": "pcm"}
        return (await http.post("/v1/audio/speech", json=body)).content

    for text, content in zip(texts, await asyncio.gather(*map(speak, texts)), strict=True):
        assert content == fetch_pcm(server, text)


async def events(http: httpx.AsyncClient, body: dict[str, Any]) -> list[dict[str, Any]]:
    async with http.stream("POST", "/v1/audio/speech", json=body) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        return [
            json.loads(line.removeprefix("data: ")) async for line in response.aiter_lines() if line
        ]


@pytest.mark.parametrize("response_format", ["pcm", "wav"])
async def test_server_sent_events(
    server: Server, http: httpx.AsyncClient, response_format: str
) -> None:
    body = {"input": "hello", "stream_format": "sse", "response_format": response_format}
    *deltas, done = await events(http, body)
    assert {delta["type"] for delta in deltas} == {"speech.audio.delta"}
    content = b"".join(base64.b64decode(delta["audio"]) for delta in deltas)
    assert content.endswith(fetch_pcm(server, "hello"))
    assert content.startswith(b"RIFF" if response_format == "wav" else b"")
    assert done == {
        "type": "speech.audio.done",
        "usage": {"input_tokens": 5, "output_tokens": 2, "total_tokens": 7},
    }


@pytest.mark.parametrize("response_format", ["mp3", "opus", "aac", "flac"])
async def test_events_carry_compressed_files(http: httpx.AsyncClient, response_format: str) -> None:
    body = {"input": "hello" * 10, "response_format": response_format}
    whole = (await http.post("/v1/audio/speech", json=body)).content
    *deltas, done = await events(http, {**body, "stream_format": "sse"})
    assert all(delta["audio"] for delta in deltas)
    assert len(deltas) > 2
    assert b"".join(base64.b64decode(delta["audio"]) for delta in deltas) == whole
    assert done["usage"] == {"input_tokens": 50, "output_tokens": 20, "total_tokens": 70}


async def test_events_tell_of_a_break(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 2, RequestFailed("broke")
    received = await events(http, {"input": "hello", "stream_format": "sse"})
    assert received[-1]["type"] == "speech.audio.error"
    assert received[-1]["error"]["code"] == "request_failed"


@pytest.fixture
async def openai_client(server: Server):  # type: ignore[no-untyped-def]
    async with openai.AsyncOpenAI(
        base_url=f"{server.url}/v1", api_key="none", max_retries=0
    ) as client:
        yield client


async def test_openai_client(server: Server, openai_client: openai.AsyncOpenAI) -> None:
    speech = openai_client.audio.speech
    pcm = await speech.create(input="hello", model="tts-1", voice="alloy", response_format="pcm")
    assert pcm.content == fetch_pcm(server, "hello")
    wav = await speech.create(input="hello", model="solo", voice="clara", response_format="wav")
    assert wav.content[:4] == b"RIFF"
    default = await speech.create(input="hello", model="tts-1", voice={"id": "nova"}, speed=1.5)
    assert decoded(default.content) == ("mp3float", 24_000, 1)
    assert server.solo.counts.requests[-1].speed == 1.5
    models = [model.id async for model in openai_client.models.list()]
    assert models == ["solo", "duo", "omni", "reader", "painter", "editor", "ears"]
    assert (await openai_client.models.retrieve("tts-1")).id == "solo"


async def test_openai_client_streams(server: Server, openai_client: openai.AsyncOpenAI) -> None:
    server.solo.behaviour.interval_s = 0.02
    async with openai_client.audio.speech.with_streaming_response.create(
        input="x" * 10, model="tts-1", voice="alloy", response_format="pcm"
    ) as response:
        pieces = response.iter_bytes()
        received = await anext(pieces)
        assert server.solo.counts.open == 1
        async for piece in pieces:
            received += piece
    assert received == fetch_pcm(server, "x" * 10)


async def test_openai_client_sees_codes(server: Server, openai_client: openai.AsyncOpenAI) -> None:
    speech = openai_client.audio.speech
    with pytest.raises(openai.BadRequestError) as refused:
        await speech.create(input="hello", model="tts-1", voice="bob", response_format="pcm")
    assert (refused.value.code, refused.value.type) == ("voice_not_found", "invalid_request_error")
    assert refused.value.param == "voice"
    assert (refused.value.request_id or "").startswith("req_")
    with pytest.raises(openai.NotFoundError) as missing:
        await speech.create(input="hello", model="nope", voice="bob", response_format="pcm")
    assert missing.value.code == "model_not_found"
    server.solo.behaviour.capacity = 0
    with pytest.raises(openai.RateLimitError) as busy:
        await speech.create(input="hello", model="tts-1", voice="alloy", response_format="pcm")
    assert busy.value.code == "rate_limit_exceeded"


@pytest.mark.parametrize(("provenance", "synthetic"), [("tags", True), ("off", None)])
async def test_files_say_that_a_model_made_them_if_the_operator_wants(
    provenance: Provenance, synthetic: bool | None
) -> None:
    service = FakeService()
    async with (
        running(service, ServerSettings(provenance=provenance)) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        await eventually(lambda: service.ready)
        doors = {
            "/v1/audio/speech": {"input": "hello"},
            "/v1/text-to-speech/clara": {"text": "hello"},
        }
        doors["/v1/speak"] = {"text": "hello"}
        for door, body in doors.items():
            file = (await http.post(door, json=body)).content
            assert find_provenance(file).synthetic is synthetic
        drawn = await http.post("/v1/images/generations", json={"prompt": "a hat"})
        picture = base64.b64decode(drawn.json()["data"][0]["b64_json"])
        assert find_provenance(picture).synthetic is synthetic


async def test_whole_files_are_signed_and_streams_say_that_they_are_not(tmp_path: Path) -> None:
    pytest.importorskip("c2pa")
    service, signing = FakeService(), SigningFiles(*write_trial_certificate(tmp_path))
    async with (
        running(service, ServerSettings(provenance="signed", signing=signing)) as server,
        httpx.AsyncClient(base_url=server.url) as http,
    ):
        await eventually(lambda: service.ready)
        for form, sign, expected in (
            ("wav", True, "self-signed"),
            ("flac", True, "self-signed"),
            ("wav", False, "tags"),
            ("opus", False, "tags"),
            ("pcm", False, "none"),
        ):
            body = {"input": "hello", "response_format": form, "sign": sign}
            answer = await http.post("/v1/audio/speech", json=body)
            assert answer.headers["x-provenance"] == expected, (form, sign)
            if sign:
                files = {"file": ("a", answer.content)}
                found = (await http.post("/v1/provenance/verify", files=files)).json()
                assert found["manifest"]["state"] == "valid"
                assert (found["manifest"]["self_signed"], found["confidence"]) == (True, "signed")
        lines = await http.post(
            "/v1/audio/speech/batch",
            json={"requests": [{"custom_id": "a", "input": "hello", "response_format": "mp3"}]},
        )
        file = base64.b64decode(lines.json()["audio"])
        drawn = await http.post("/v1/images/generations", json={"prompt": "a hat"})
        picture = base64.b64decode(drawn.json()["data"][0]["b64_json"])
        for one in (file, picture):
            manifest = find_provenance(one).manifest
            assert manifest is not None
            assert manifest.state == "valid"
        for refused, param in (
            ({"response_format": "opus"}, "response_format"),
            ({"stream_format": "sse"}, "sign"),
        ):
            body = {"input": "hello", "sign": True, **refused}
            answer = await http.post("/v1/audio/speech", json=body)
            assert (answer.status_code, answer.json()["error"]["param"]) == (400, param)


async def test_a_signature_that_nobody_makes_is_refused(http: httpx.AsyncClient) -> None:
    answer = await http.post("/v1/audio/speech", json={"input": "hello", "sign": True})
    assert (answer.status_code, answer.json()["error"]["param"]) == (400, "sign")
