"""Deepgram's /v1/listen over a WebSocket."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

import httpx
import numpy as np
import pytest
from fake_service import eventually
from json_socket import JsonSocket, Message, json_socket
from live_server import Server
from numpy.typing import NDArray
from recorded_speech import RATE, encode, silence, speech, write_file
from websockets.exceptions import InvalidStatus

from cantata.api.settings import ServerSettings
from cantata.api.transcription import live
from cantata.contract.data.errors import RequestFailed
from cantata.speech_input import recordings
from cantata.speech_input.sound import HEARD_RATE

CUT_S = 0.02
"""Seconds of sound in one message."""


def address(server: Server, **query: Any) -> str:
    params = httpx.QueryParams({"model": "nova-3", **query})
    return server.url.replace("http", "ws") + f"/v1/listen?{params}"


def samples(server: Server, **query: Any) -> str:
    return address(server, encoding="linear16", sample_rate=RATE, **query)


async def send_sound(c: JsonSocket, *parts: NDArray[np.float32]) -> None:
    data = encode(np.concatenate(parts))
    step = int(CUT_S * RATE) * 2
    for start in range(0, len(data), step):
        await c.socket.send(data[start : start + step])


async def until_closed(c: JsonSocket) -> list[Message]:
    return await c.until(type="Metadata")


def finals(messages: Sequence[Message]) -> list[Message]:
    return [one for one in messages if one["type"] == "Results" and one["is_final"]]


def text(results: Message) -> str:
    (alternative,) = results["channel"]["alternatives"]
    return str(alternative["transcript"])


def heard_s(server: Server) -> list[float]:
    """Seconds of each recognized window."""
    return [len(one) / HEARD_RATE for one in server.service.ears.counts.sounds]


async def test_speech_is_written_down_utterance_by_utterance(server: Server) -> None:
    options = {"vad_events": "true", "utterance_end_ms": 1000, "punctuate": "true"}
    async with json_socket(samples(server, **options)) as c:
        await send_sound(c, silence(1), speech(), silence(2), speech(), silence(2))
        await c.send(type="CloseStream")
        messages = await until_closed(c)
        assert await c.closed() == 1000
    kinds = ["SpeechStarted", "Results", "UtteranceEnd"]
    assert [one["type"] for one in messages] == [*kinds * 2, "Metadata"]
    for began, results, end in (messages[:3], messages[3:6]):
        assert results["speech_final"]
        (alternative,) = results["channel"]["alternatives"]
        words = alternative["words"]
        assert [word["word"] for word in words] == text(results).split()
        assert words[0]["start"] == results["start"]
        assert results["start"] <= began["timestamp"] <= results["start"] + 1
        assert end["last_word_end"] == words[-1]["end"]
        assert alternative["confidence"] == 0.75
    assert messages[3]["timestamp"] - messages[0]["timestamp"] == pytest.approx(5.4, abs=0.3)
    metadata = messages[-1]
    assert metadata["duration"] == pytest.approx(1 + 2 * (3.44 + 2), abs=0.1)
    assert metadata["model_info"]["ears"]["name"] == "ears"
    assert server.service.ears.counts.open == 0


async def test_interim_results_come_before_the_final_one(server: Server) -> None:
    async with json_socket(samples(server, interim_results="true")) as c:
        await send_sound(c, speech())
        messages = await c.until(is_final=False)
        await send_sound(c, silence(1))
        messages += await c.until(is_final=True)
    *interim, final = messages
    assert not any(one["speech_final"] for one in interim)
    lengths = [one["duration"] for one in (*interim, final)]
    assert lengths == sorted(lengths)
    assert {one["start"] for one in interim} == {final["start"]}
    assert text(final).startswith(text(interim[-1]))


async def test_options_reach_the_model(server: Server) -> None:
    words = [("keyterm", "Cantata"), ("keyterm", "vLLM"), ("keywords", "tea:2")]
    query = httpx.QueryParams(
        [*httpx.URL(samples(server, language="de-AT")).params.items(), *words]
    )
    async with json_socket(address(server).partition("?")[0] + f"?{query}") as c:
        await send_sound(c, speech())
        await c.send(type="CloseStream")
        await until_closed(c)
    (request,) = server.service.ears.counts.requests
    assert (request.language, request.prompt) == ("de-AT", "Cantata, vLLM, tea")
    assert request.timestamps
    assert not request.batch


async def test_marks_and_capitals_are_left_out_unless_asked_for(server: Server) -> None:
    server.service.ears.behaviour.text = "It's 3.5 o'clock, \u201cSir\u201d: a well-known time!"
    for option, expected in (
        ({}, "it's 3.5 o'clock sir a well-known time"),
        ({"punctuate": "true"}, server.service.ears.behaviour.text),
        ({"smart_format": "true"}, server.service.ears.behaviour.text),
    ):
        async with json_socket(samples(server, **option)) as c:
            await send_sound(c, speech())
            await c.send(type="CloseStream")
            assert text(finals(await until_closed(c))[0]) == expected


@pytest.mark.parametrize(
    ("query", "data"),
    [
        ({"encoding": "linear16", "sample_rate": 8000}, encode(speech(8000), rate=8000)),
        ({"encoding": "linear16", "sample_rate": 48000}, encode(speech(48000), rate=48000)),
        (
            {"encoding": "linear16", "sample_rate": 16000, "channels": 2},
            encode(np.repeat(speech()[:, None], 2, axis=1)),
        ),
        ({"encoding": "mulaw"}, encode(speech(8000), "mulaw", 8000)),
        ({"encoding": "alaw", "sample_rate": 8000}, encode(speech(8000), "alaw", 8000)),
        ({}, write_file(speech(), "wav", "pcm_s16le")),
        ({}, write_file(speech(), "ogg", "libopus", 48000)),
        ({}, write_file(speech(), "webm", "libopus", 48000)),
        ({}, write_file(speech(), "mp3", "mp3")),
    ],
    ids=["8 kHz", "48 kHz", "stereo", "mulaw", "alaw", "wav", "ogg", "webm", "mp3"],
)
async def test_encodings_and_containers(server: Server, query: dict[str, Any], data: bytes) -> None:
    async with json_socket(address(server, **query)) as c:
        # A message may end within a sample.
        for start in range(0, len(data), 1001):
            await c.socket.send(data[start : start + 1001])
        await c.send(type="CloseStream")
        messages = await until_closed(c)
    assert sum(heard_s(server)) == pytest.approx(3.4, abs=0.3)
    assert messages[-1]["duration"] == pytest.approx(3.44, abs=0.15)
    loudest = max(np.abs(one).max() for one in server.service.ears.counts.sounds)
    assert 0.2 < loudest <= 1


async def test_a_finalize_is_answered_at_once(server: Server) -> None:
    async with json_socket(samples(server)) as c:
        await c.send(type="KeepAlive")
        await c.send(type="Finalize")
        nothing = await c.message()
        assert (text(nothing), nothing["from_finalize"], nothing["is_final"]) == ("", True, True)
        await send_sound(c, speech())
        await c.send(type="Finalize")
        results = (await c.until(from_finalize=True))[-1]
        assert text(results)
        # No sound but this closes it, as older clients do.
        await c.socket.send(b"")
        assert (await c.message())["type"] == "Metadata"
        assert await c.closed() == 1000


async def test_long_speech_is_cut_without_a_gap(server: Server) -> None:
    server.service.ears.max_window_s = 5.0
    async with json_socket(samples(server, endpointing="false")) as c:
        await send_sound(c, *[speech()[:48000]] * 4)
        await c.send(type="CloseStream")
        cut = finals(await until_closed(c))
    assert len(cut) > 2
    for before, after in pairwise(cut):
        assert after["start"] == pytest.approx(before["start"] + before["duration"], abs=0.15)
    assert max(heard_s(server)) <= 5.0
    assert sum(heard_s(server)) == pytest.approx(12, abs=0.5)
    assert [one["speech_final"] for one in cut] == [False] * (len(cut) - 1) + [True]


async def test_silence_is_not_recognized(server: Server) -> None:
    async with json_socket(samples(server, interim_results="true", vad_events="true")) as c:
        noise = np.random.default_rng(0).normal(0, 0.01, 5 * RATE).astype(np.float32)
        await send_sound(c, silence(5), noise)
        await c.send(type="CloseStream")
        assert [one["type"] for one in await until_closed(c)] == ["Metadata"]
    assert not server.service.ears.counts.requests


async def test_a_client_that_stops_sending_in_mid_speech(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(live, "SOUND_GAP_S", 0.05)
    async with json_socket(samples(server)) as c:
        await send_sound(c, speech()[: 2 * RATE])
        results = (await c.until(is_final=True))[-1]
        assert text(results)
        assert results["speech_final"]
        assert server.service.ears.counts.open == 0


@pytest.mark.parametrize(
    ("query", "status", "says"),
    [
        ({"encoding": "opus"}, 400, "linear16"),
        ({"encoding": "linear16"}, 400, "sample_rate is required"),
        ({"encoding": "linear16", "sample_rate": 1}, 400, "8000"),
        ({"encoding": "mulaw", "channels": 2}, 400, "one channel"),
        ({"channels": 9}, 400, "channels"),
        ({"multichannel": "true", "channels": 2}, 400, "valid: false"),
        ({"language": "xx"}, 400, "language 'xx': valid: en, de, multi"),
        ({"endpointing": "soon"}, 400, "endpointing"),
        ({"utterance_end_ms": 1}, 400, "utterance_end_ms"),
        ({"callback": "http://localhost"}, 400, "callback"),
        ({"model": "solo"}, 404, "no model 'solo' that transcribes; served: ears"),
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
    assert says in response.body.decode()
    assert b"err_msg" in response.body


async def test_no_room_is_an_http_error_before_the_socket(server: Server) -> None:
    server.service.ears.behaviour.full = True
    with pytest.raises(InvalidStatus) as refused:
        async with json_socket(samples(server)):
            pass
    assert refused.value.response.status_code == 429
    assert refused.value.response.headers["retry-after"] == "2"


@pytest.mark.parametrize(
    ("sent", "says"),
    [
        ('{"type": "Speak"}', "valid types: 'KeepAlive', 'Finalize', 'CloseStream'"),
        ("hello", "not valid JSON"),
        ("[]", "JSON object"),
    ],
)
async def test_a_wrong_message_is_warned_of(server: Server, sent: str, says: str) -> None:
    async with json_socket(samples(server)) as c:
        await c.socket.send(sent)
        warning = await c.message()
        assert warning["type"] == "Warning"
        assert says in warning["description"]
        await send_sound(c, speech())
        await c.send(type="CloseStream")
        assert text(finals(await until_closed(c))[0])


@pytest.mark.parametrize("data", [b"hello, this is no sound", b"OggS" + bytes(1000), b"R"], ids=len)
async def test_a_file_that_is_none_ends_the_connection(server: Server, data: bytes) -> None:
    async with json_socket(address(server)) as c:
        await c.socket.send(data)
        await c.send(type="CloseStream")
        error = await c.message()
        assert error["type"] == "Error"
        assert "the sound" in error["description"]
        assert await c.closed() == 1008


async def test_files_that_arrive_are_counted(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(recordings, "MAX_ARRIVING", 1)
    async with json_socket(address(server)) as first:
        async with json_socket(address(server)) as second:
            error = await second.message()
            assert error["code"] == "TOO_MANY_REQUESTS"
            assert await second.closed() == 1013
        await first.socket.send(write_file(speech(), "ogg", "libopus", 48000))
        await first.send(type="CloseStream")
        assert text(finals(await until_closed(first))[0])
    async with json_socket(address(server)) as third:
        await third.send(type="CloseStream")
        assert (await third.message())["type"] == "Error"  # a file of no bytes is none
        assert await third.closed() == 1008


@pytest.mark.parametrize("settings", [ServerSettings(max_message_bytes=10_000)])
async def test_a_message_that_is_too_large_ends_the_connection(server: Server) -> None:
    async with json_socket(samples(server)) as c:
        await c.socket.send(bytes(20_000))
        assert await c.closed() == 1009


async def test_a_failure_is_reported_and_survived(server: Server) -> None:
    ears = server.service.ears
    async with json_socket(samples(server)) as c:
        ears.behaviour.error = RequestFailed("it broke")
        await send_sound(c, speech(), silence(1))
        error = (await c.until(type="Error"))[-1]
        assert (error["code"], error["description"]) == ("REQUEST_FAILED", "it broke")
        await c.until(speech_final=True)
        ears.behaviour.error = None
        await send_sound(c, speech(), silence(1))
        assert text((await c.until(speech_final=True))[-1])
    await eventually(lambda: ears.counts.open == 0)


async def test_a_disconnect_ends_the_work_at_once(server: Server) -> None:
    ears = server.service.ears
    ears.behaviour.may_finish = asyncio.Event()
    for query in ({"encoding": "linear16", "sample_rate": RATE}, {}):
        async with json_socket(address(server, **query)) as c:
            if query:
                await send_sound(c, speech(), silence(1))
            else:
                await c.socket.send(write_file(speech(), "wav", "pcm_s16le"))
            await eventually(lambda: ears.counts.open == 1)
            c.socket.transport.abort()
            await eventually(lambda: ears.counts.open == 0)
    assert not ears.counts.finished


async def test_what_is_being_said_is_finished_while_the_server_stops(server: Server) -> None:
    async with json_socket(samples(server)) as idle, json_socket(samples(server)) as c:
        await send_sound(c, speech()[: 2 * RATE])
        await eventually(lambda: server.service.ears.counts.open == 1)
        server.app.state.context.drain.announce()
        assert (await idle.message())["code"] == "GOING_AWAY"
        assert await idle.closed() == 1001
        await send_sound(c, speech()[2 * RATE :], silence(1))
        results = await c.message()
        assert text(results)
        assert results["speech_final"]
        assert (await c.message())["code"] == "GOING_AWAY"
        assert await c.closed() == 1001
