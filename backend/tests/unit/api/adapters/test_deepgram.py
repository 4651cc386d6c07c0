"""Deepgram's /v1/speak over a WebSocket and over HTTP."""

from __future__ import annotations

import asyncio
import io
from typing import Any

import av
import httpx
import numpy as np
import pytest
import soundfile
import soxr
from fake_service import eventually, expected_pcm
from json_socket import JsonSocket, json_socket
from live_server import Server, until_still
from numpy.typing import NDArray
from websockets.exceptions import InvalidStatus

from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed


def address(server: Server, **query: Any) -> str:
    params = httpx.QueryParams({"model": "aura-2-thalia-en", **query})
    return server.url.replace("http", "ws") + f"/v1/speak?{params}"


def spoken(server: Server, *texts: str) -> bytes:
    return b"".join(encode_s16le(expected_pcm(text, server.solo.behaviour)) for text in texts)


def assert_same_sound(got: NDArray[Any], server: Server, text: str, rate: int) -> None:
    """Noise does not survive a lossy step bit for bit, but must be recognizable."""
    given = soxr.resample(expected_pcm(text, server.solo.behaviour)[:, 0], 24_000, rate)
    assert len(got) == pytest.approx(len(given), abs=rate * 0.15)
    assert np.corrcoef(got[: len(given)], given[: len(got)])[0, 1] > 0.9


async def started(c: JsonSocket) -> None:
    assert (await c.message())["type"] == "Metadata"


async def test_text_is_spoken_sentence_by_sentence_and_flushed(server: Server) -> None:
    async with json_socket(address(server, encoding="linear16", sample_rate=24000)) as c:
        metadata = await c.message()
        assert metadata["type"] == "Metadata"
        assert (metadata["model_name"], metadata["model_uuid"]) == ("solo", "clara")
        for word in ("First ", "one. ", "Second"):
            await c.send(type="Speak", text=word)
        await eventually(lambda: server.solo.counts.finished == 1)
        await c.send(type="Flush")
        assert await c.message() == {"type": "Flushed", "sequence_id": 0}
        assert c.sound == spoken(server, "First one.", "Second")
        await c.send(type="Flush")
        assert await c.message() == {"type": "Flushed", "sequence_id": 1}
        await c.send(type="Close")
        assert await c.closed() == 1000


async def test_sentences_without_a_space_between_them_are_split(server: Server) -> None:
    async with json_socket(address(server)) as c:
        await started(c)
        for text in ("This is one.", "That is another.", "3", ".", "14"):
            await c.send(type="Speak", text=text)
        await c.send(type="Flush")
        await c.message()
    said = [request.text for request in server.solo.counts.requests]
    assert said == ["This is one.", "That is another.", "3.14"]


async def test_a_long_sentence_is_cut_at_a_clause(server: Server) -> None:
    server.solo.max_input_characters = 400
    clause = "and so it went on for quite a while, "
    async with json_socket(address(server)) as c:
        await started(c)
        await c.send(type="Speak", text=clause * 5)
        await eventually(lambda: server.solo.counts.finished == 1)
        await c.send(type="Speak", text="until it ended")
        await c.send(type="Flush")
        await c.message()
    said = [request.text for request in server.solo.counts.requests]
    assert said == [(clause * 5).strip(), "until it ended"]


async def test_clear_silences_at_once_and_the_next_text_is_clean(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s, how.may_abort = 1000, 0.01, asyncio.Event()
    async with json_socket(address(server)) as c:
        await started(c)
        await c.send(type="Speak", text="A long story. Another waits. And this is buff")
        await c.send(type="Flush")
        await eventually(lambda: server.solo.counts.chunks > 5)
        await c.send(type="Clear")
        assert (await c.message())["type"] == "Cleared"
        assert server.solo.counts.aborted == 0  # answered before the stages have
        made = server.solo.counts.chunks
        how.may_abort.set()
        c.sound, how.chunks = b"", 3
        await c.send(type="Speak", text="Next")
        await c.send(type="Flush")
        assert (await c.message())["type"] == "Flushed"
        assert c.sound == spoken(server, "Next")
        assert server.solo.counts.chunks == made + 3
    counts = server.solo.counts
    assert [request.text for request in counts.requests] == ["A long story.", "Next"]
    assert (counts.aborted, counts.abort_interrupted) == (1, 0)


async def test_close_and_disconnect_end_the_work_at_once(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s = 1000, 0.01
    async with json_socket(address(server)) as polite, json_socket(address(server)) as cut:
        for c in (polite, cut):
            await c.send(type="Speak", text="A long story.")
            await c.send(type="Flush")
        await eventually(lambda: server.solo.counts.open == 2)
        await polite.send(type="Close")
        assert await polite.closed() == 1000
        cut.socket.transport.abort()
        await eventually(lambda: server.solo.counts.open == 0)
    assert server.solo.counts.aborted == 2


async def test_a_slow_listener_holds_back_the_work_and_can_still_clear(server: Server) -> None:
    server.solo.behaviour.chunks = 4000
    async with json_socket(address(server), max_queue=1) as c:
        await started(c)
        await c.send(type="Speak", text="hello")
        await c.send(type="Flush")
        await until_still(lambda: server.solo.counts.chunks)
        assert server.solo.counts.chunks < 4000
        await c.send(type="Clear")
        await eventually(lambda: server.solo.counts.aborted == 1)
        assert (await c.message())["type"] == "Cleared"


@pytest.mark.parametrize(
    ("message", "says"),
    [
        ({"type": "Shout"}, "valid types: 'Speak', 'Flush', 'Clear', 'Close'"),
        ({"type": "Speak"}, "text is required"),
        ({"type": "Speak", "text": "x" * 500}, "at most 200"),
    ],
)
async def test_a_wrong_message_is_warned_of(
    server: Server, message: dict[str, str], says: str
) -> None:
    async with json_socket(address(server)) as c:
        await started(c)
        await c.send(**message)
        warning = await c.message()
        assert warning["type"] == "Warning"
        assert says in warning["description"]
        assert warning["warn_msg"] == warning["description"]
        await c.send(type="Speak", text="fine")
        await c.send(type="Flush")
        assert (await c.message())["type"] == "Flushed"
        assert c.sound == spoken(server, "fine")


async def test_overload_and_failures_are_reported_and_survived(server: Server) -> None:
    async with json_socket(address(server)) as c:
        await started(c)
        server.solo.behaviour.capacity = 0
        await c.send(type="Speak", text="too many")
        await c.send(type="Flush")
        error = await c.message()
        assert (error["type"], error["code"]) == ("Error", "TOO_MANY_REQUESTS")
        assert (await c.message())["type"] == "Flushed"
        server.solo.behaviour.capacity = 10
        server.solo.behaviour.fail_after = 1
        server.solo.behaviour.error = RequestFailed("it broke")
        await c.send(type="Speak", text="broken")
        await c.send(type="Flush")
        error = await c.message()
        assert (error["code"], error["description"]) == ("REQUEST_FAILED", "it broke")
        assert (await c.message())["type"] == "Flushed"


async def test_more_text_than_may_wait_is_rejected(server: Server) -> None:
    server.solo.behaviour.first_after_s = 5
    async with json_socket(address(server)) as c:
        await started(c)
        for _ in range(12):
            await c.send(type="Speak", text="This is one. " * 6)
        warning = await c.message()
        assert (warning["type"], warning["code"]) == ("Warning", "TOO_MANY_REQUESTS")


@pytest.mark.parametrize("encoding", ["linear16", "mulaw", "alaw"])
async def test_telephone_sound_over_a_socket(server: Server, encoding: str) -> None:
    async with json_socket(address(server, encoding=encoding, sample_rate=8000)) as c:
        await started(c)
        await c.send(type="Speak", text="hello there")
        await c.send(type="Flush")
        await c.message()
    subtype = {"linear16": "PCM_16", "mulaw": "ULAW", "alaw": "ALAW"}[encoding]
    got, _ = soundfile.read(
        io.BytesIO(c.sound), samplerate=8000, channels=1, format="RAW", subtype=subtype
    )
    assert_same_sound(got, server, "hello there", 8000)


async def test_a_stereo_model_is_heard_in_mono(server: Server) -> None:
    async with json_socket(address(server, model="duo", sample_rate=48000)) as c:
        await started(c)
        await c.send(type="Speak", text="both ears")
        await c.send(type="Flush")
        await c.message()
    stereo = expected_pcm("both ears", server.service.duo.behaviour, 2)
    got = np.frombuffer(c.sound, "<i2") / 32767
    np.testing.assert_allclose(got, stereo.mean(axis=1).clip(-1, 1), atol=1e-4)


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"encoding": "mp3"}, 400, "encoding"),
        ({"sample_rate": 1}, 400, "sample_rate"),
        ({"model": "nobody"}, 400, "no voice 'nobody'"),
    ],
)
async def test_wrong_options_are_an_http_error_before_the_socket(
    server: Server, query: dict[str, Any], status: int, says: str
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with json_socket(address(server, **query)):
            pass
    response = refused.value.response
    assert response.status_code == status
    body = httpx.Response(200, content=bytes(response.body)).json()
    assert set(body) == {"err_code", "err_msg", "request_id"}
    assert says in body["err_msg"]


async def test_voices_of_ours_are_chosen_by_name(server: Server) -> None:
    for name in ("ben", "Ben", "onyx"):
        async with json_socket(address(server, model=name, speed=1.2)) as c:
            await started(c)
            await c.send(type="Speak", text="hi")
            await c.send(type="Flush")
            await c.message()
    requests = server.solo.counts.requests
    assert {(request.voice, request.speed) for request in requests} == {("ben", 1.2)}


@pytest.mark.parametrize(
    ("query", "media_type", "rate"),
    [
        ({}, "audio/mpeg", 22_050),
        ({"encoding": "linear16"}, "audio/wav", 24_000),
        ({"encoding": "linear16", "sample_rate": 16000}, "audio/wav", 16_000),
        ({"encoding": "mulaw"}, "audio/wav", 8_000),
        ({"encoding": "alaw"}, "audio/wav", 8_000),
        ({"encoding": "flac"}, "audio/flac", 24_000),
        ({"encoding": "opus"}, "audio/ogg", 48_000),
        ({"encoding": "mp3", "bit_rate": 48000}, "audio/mpeg", 22_050),
    ],
)
async def test_one_text_over_http(
    server: Server, http: httpx.AsyncClient, query: dict[str, Any], media_type: str, rate: int
) -> None:
    body = {"text": "hello there"}
    answer = await http.post("/v1/speak", params={"model": "aura-asteria-en", **query}, json=body)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"] == media_type
    with av.open(io.BytesIO(answer.content), "r") as file:
        frames = list(file.decode(audio=0))
    assert frames[0].sample_rate == rate
    samples = sum(frame.samples for frame in frames)
    assert samples == pytest.approx(11 * 480 / 24_000 * rate, abs=rate * 0.15)


async def test_bare_samples_over_http(server: Server, http: httpx.AsyncClient) -> None:
    query = {"encoding": "linear16", "container": "none", "sample_rate": 24000}
    answer = await http.post("/v1/speak", params=query, json={"text": "hello"})  # type: ignore[arg-type]
    assert answer.content == spoken(server, "hello")


@pytest.mark.parametrize(
    ("query", "body", "status", "code", "says"),
    [
        ({}, {"text": ""}, 400, "Bad Request", "empty"),
        ({}, {}, 400, "Bad Request", "text is required"),
        ({"encoding": "mp3", "container": "wav"}, {"text": "x"}, 400, "Bad Request", "container"),
        ({"encoding": "opus", "sample_rate": 9000}, {"text": "x"}, 400, "Bad Request", "valid"),
        ({"model": "nobody"}, {"text": "x"}, 400, "Bad Request", "nobody"),
    ],
)
async def test_http_errors_are_deepgrams(
    http: httpx.AsyncClient,
    query: dict[str, Any],
    body: dict[str, str],
    status: int,
    code: str,
    says: str,
) -> None:
    answer = await http.post("/v1/speak", params=query, json=body)
    error = answer.json()
    assert (answer.status_code, error["err_code"]) == (status, code)
    assert says in error["err_msg"]
    assert error["request_id"] == answer.headers["x-request-id"]


async def test_http_overload_is_deepgrams(server: Server, http: httpx.AsyncClient) -> None:
    server.solo.behaviour.capacity = 0
    answer = await http.post("/v1/speak", json={"text": "hello"})
    assert (answer.status_code, answer.json()["err_code"]) == (429, "TOO_MANY_REQUESTS")
    assert answer.headers["retry-after"] == "3"
