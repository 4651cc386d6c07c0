"""Calls over WebRTC: a WebSocket's events, sound by tracks, and what the server plays of it."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator

import pytest
from endpoints import Endpoints
from fake_service import eventually, expected_pcm
from live_server import Server

from calling import LOUD, RATE, Caller, caller, loudest
from cantata.audio.pcm import encode_s16le
from talking import ANSWER, HEARD, SPOKEN, TRANSCRIBED, assert_idle, cancelled, part, speech

STARTED = "output_audio_buffer.started"
STOPPED = "output_audio_buffer.stopped"
CLEARED = "output_audio_buffer.cleared"
LONG = "A long answer of many words that nobody hears to its end."
LATE = 5 + 4
"""Packets, of 20 ms, that may still come when speech is detected: 0.1 s of them, and what the
caller's jitter buffer holds."""


@pytest.fixture
async def call(server: Server) -> AsyncIterator[Caller]:
    async with caller(server.url) as one:
        yield one
    await eventually(lambda: server.app.state.context.calls.count == 0)
    await assert_idle(server.url)


@pytest.fixture
def slow(server: Server, others: Endpoints) -> None:
    """Answers that last much longer than a test."""
    server.solo.behaviour.chunks = 5_000
    server.solo.behaviour.chunk_samples = server.solo.sample_rate // 5
    server.solo.behaviour.interval_s = 0.02
    others.deltas = [LONG]


async def begin(c: Caller) -> str:
    """An answer that is heard; its item's id."""
    await c.write("Go on.")
    await c.send("response.create")
    await c.until(STARTED)
    await eventually(c.loud_times)
    (added,) = (e for e in c.events if e["type"] == "response.output_item.added")
    return str(added["item"]["id"])


async def test_a_spoken_turn_has_a_websockets_events_and_is_heard(
    call: Caller, server: Server, others: Endpoints
) -> None:
    await call.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
    call.events.clear()
    call.microphone.play(speech())
    stopped = await call.until(STOPPED)
    told = [kind for kind in call.types() if not kind.startswith("output_audio_buffer.")]
    spoken = [kind for kind in SPOKEN if kind != "response.output_audio.delta"]
    kinds = [kind for kind in told if kind != TRANSCRIBED[0]]
    assert kinds == [*HEARD, *ANSWER, TRANSCRIBED[1], *spoken]
    response = part(call, "response.done")["response"]
    assert response["status"] == "completed"  # type: ignore[index]
    assert part(call, STARTED)["response_id"] == stopped["response_id"] == response["id"]  # type: ignore[index]
    assert "content" in others.asked[0]["messages"][-1]
    sound = encode_s16le(expected_pcm("The answer.", server.solo.behaviour))
    seconds = len(sound) / 2 / server.solo.sample_rate
    await eventually(lambda: abs(len(call.spoken()) / RATE - seconds) < 0.05)


@pytest.mark.usefixtures("slow")
async def test_speech_interrupts_what_is_heard_and_the_rest_is_forgotten(
    call: Caller, server: Server
) -> None:
    item_id = await begin(call)
    call.microphone.play(speech())
    await call.until("input_audio_buffer.speech_started")
    before = len(call.loud_times())
    await call.until("response.done")
    cancelled(call, "turn_detected")
    truncated = await call.until("conversation.item.truncated")
    assert part(call, CLEARED)["response_id"] == part(call, STARTED)["response_id"]
    await call.until("response.created")  # to what was said
    assert (truncated["item_id"], truncated["content_index"]) == (item_id, 0)
    heard_s = len(call.loud_times()) / 50
    assert abs(truncated["audio_end_ms"] / 1000 - heard_s) < 0.3
    assert len(call.loud_times()) - before <= LATE
    assert server.solo.counts.aborted == 1


@pytest.mark.usefixtures("slow")
async def test_an_answer_makes_room_for_a_backchannel_and_comes_back(
    call: Caller, server: Server
) -> None:
    """Where words interrupt, the answer is silent as soon as somebody speaks, and nothing of it is
    lost if that was no interruption."""
    await call.update(
        audio={"input": {"turn_detection": {"type": "server_vad", "interrupt_on": "words"}}}
    )
    await begin(call)
    brief = speech()[: round(1.2 * 48_000)] + bytes(48_000)
    ears = server.service.ears
    ears.behaviour.text = "Mm-hm."
    call.microphone.play(brief)
    await eventually(lambda: ears.counts.finished == 1)
    assert quiet_packets(call) >= 25, "half a second at least"
    loud = len(call.loud_times())
    await eventually(lambda: len(call.loud_times()) > loud + 5)
    assert quiet_packets(call) < 100, "sooner than the limit would bring it back"
    assert not {"input_audio_buffer.speech_started", CLEARED, STOPPED} & set(call.types())
    ears.behaviour.text = "Wait, stop."
    call.microphone.play(brief)
    truncated = await call.until("conversation.item.truncated")
    assert call.types().count("input_audio_buffer.speech_started") == 1
    heard_s = len(call.loud_times()) / 50
    assert abs(truncated["audio_end_ms"] / 1000 - heard_s) < 0.15, "silence is no part of it"


def quiet_packets(call: Caller) -> int:
    """Silent packets since the first that was not."""
    loud = [loudest(one) > LOUD for one in call.heard]
    return loud[loud.index(True) :].count(False)


@pytest.mark.usefixtures("slow")
async def test_a_client_clears_what_is_played(call: Caller) -> None:
    item_id = await begin(call)
    await call.send("output_audio_buffer.clear")
    await call.until(CLEARED)
    await call.until("response.done")
    cancelled(call, "client_cancelled")
    assert (await call.until("conversation.item.truncated"))["item_id"] == item_id
    # Nothing is played: nothing is cleared, and that is no error.
    await call.send("output_audio_buffer.clear")
    await call.write("Are you there?")
    assert call.types().count(CLEARED) == 1


async def test_an_answer_that_is_complete_is_still_interrupted(
    call: Caller, server: Server
) -> None:
    """The server makes sound faster than it is heard."""
    server.solo.behaviour.chunks = 500
    item_id = await begin(call)
    if "response.done" not in call.types():  # it may be whole before the first packet is sent
        await call.until("response.done")
    call.microphone.play(speech())
    truncated = await call.until("conversation.item.truncated")
    assert truncated["item_id"] == item_id
    assert 0 < truncated["audio_end_ms"] < 10_000
    assert STOPPED not in call.types()


async def test_settings_come_with_the_offer(server: Server) -> None:
    async with caller(
        server.url, type="realtime", instructions="Be brief.", model="gpt-realtime"
    ) as c:
        assert c.events[0]["session"]["instructions"] == "Be brief."
        assert re.fullmatch(r"/v1/realtime/calls/rtc_\w+", c.location)


async def test_a_client_that_names_no_address_is_found(server: Server) -> None:
    async with caller(server.url, trickle=True) as c:
        await c.write("Hello.")


async def test_a_call_only_transcribes(server: Server) -> None:
    async with caller(server.url, type="transcription") as c:
        assert c.events[0]["session"]["object"] == "realtime.transcription_session"
        c.microphone.play(speech())
        assert (await c.until(TRANSCRIBED[1]))["transcript"]


@pytest.mark.parametrize(
    ("event", "param"),
    [
        ({"type": "input_audio_buffer.append", "audio": "AAAA"}, "type"),
        (
            {
                "type": "session.update",
                "session": {
                    "type": "realtime",
                    "audio": {"output": {"format": {"type": "audio/pcmu"}}},
                },
            },
            "session.audio.output.format",
        ),
    ],
)
async def test_what_only_a_websocket_has_is_refused(
    call: Caller, event: dict[str, object], param: str
) -> None:
    await call.send(str(event["type"]), **{k: v for k, v in event.items() if k != "type"})
    assert (await call.error())["param"] == param
    await call.write("Still here?")
