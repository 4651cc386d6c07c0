"""Speech over an answer: what only shows that somebody listens is not told of, the rest as ever."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import suppress

import pytest
from endpoints import Endpoints
from fake_service import eventually
from live_server import Server

from talking import HEARD, SPOKEN, TRANSCRIBED, Talker, assert_idle, cancelled, speech, talker

STARTED, STOPPED, COMMITTED = HEARD[:3]
WORDS = {"type": "server_vad", "interrupt_on": "words"}
SPEECH_MS = len(speech()) * 1000 // 48_000


@pytest.fixture
async def c(server: Server, others: Endpoints) -> AsyncIterator[Talker]:
    """A client that hears an answer without end, and whose words are looked for."""
    server.solo.behaviour.chunks = 5_000
    server.solo.behaviour.interval_s = 0.002
    others.deltas = ["A long answer of many words that nobody hears to its end."]
    async with talker(server.url) as one:
        await one.update(audio={"input": {"turn_detection": WORDS, "transcription": {}}})
        await one.write("Go on.")
        await one.send("response.create")
        await one.until("response.output_audio.delta")
        one.events.clear()
        yield one
    await assert_idle(server.url)


async def say(c: Talker, server: Server, text: str) -> None:
    """Say what the recognizer hears as this; returns when it has."""
    ears = server.service.ears
    ears.behaviour.text, finished = text, ears.counts.finished
    await c.say(speech())
    await eventually(lambda: ears.counts.finished > finished)


async def until_interrupted(c: Talker) -> None:
    await c.until(STARTED)
    await c.until("response.done")
    cancelled(c, "turn_detected")


async def test_a_backchannel_is_not_told_of_and_the_answer_goes_on(
    c: Talker, server: Server, others: Endpoints
) -> None:
    await say(c, server, "Mm-hm.")
    await say(c, server, "Oh, I see. Right.")
    before = len(c.events)
    await say(c, server, "Wait, stop.")
    await until_interrupted(c)
    kinds = [event["type"] for event in c.events[before:]]
    place = kinds.index(STARTED)
    assert set(kinds[:place]) == {"response.output_audio.delta"}, "nothing else was told"
    assert "response.output_audio.delta" not in kinds[place:], "no sound after it"
    (started,) = (event for event in c.events if event["type"] == STARTED)
    assert started["audio_start_ms"] >= 2 * SPEECH_MS
    assert len(others.asked) == 1
    server.solo.behaviour.chunks = 3
    await c.until("response.done")
    assert [one["content"] for one in others.asked[1]["messages"] if one["role"] == "user"] == [
        "Go on.",
        "Wait, stop.",
    ], "backchannels are no part of the conversation"


async def test_an_interruption_has_the_events_of_any_turn(c: Talker, server: Server) -> None:
    await say(c, server, "Tell me about Thursday instead.")
    server.solo.behaviour.chunks = 3
    await c.until("response.done")
    await c.until("response.done")
    ids = {e["item_id"] for e in c.events if e["type"] in (*HEARD[:3], *TRANSCRIBED)}
    assert len(ids) == 1
    mine = [kind for kind in c.types() if kind in (*HEARD[:3], *TRANSCRIBED)]
    without_words = [kind for kind in mine if kind not in TRANSCRIBED]
    assert without_words == [STARTED, STOPPED, COMMITTED]
    assert mine[0] == STARTED, "no words before the speech"
    assert TRANSCRIBED[0] in mine
    ended = [kind for kind in c.types() if kind in SPOKEN[2:]]
    assert ended[:6] == SPOKEN[2:]


async def test_an_answer_stops_while_the_interruption_is_still_spoken(
    c: Talker, server: Server
) -> None:
    server.service.ears.behaviour.text = "Wait, stop."
    await c.say(speech(0.5, 0.0))
    await until_interrupted(c)
    assert STOPPED not in c.types()


async def test_words_that_are_known_late_are_told_late_and_in_order(
    c: Talker, server: Server
) -> None:
    behaviour = server.service.ears.behaviour
    behaviour.text = "Wait, stop."
    behaviour.may_finish = behaviour.may_know = asyncio.Event()
    await c.say(speech())
    await c.say(speech())
    await eventually(lambda: server.service.ears.counts.open == 2)
    await c.until("response.output_audio.delta")
    assert set(c.types()) == {"response.output_audio.delta"}
    behaviour.may_finish.set()
    server.solo.behaviour.chunks = 3
    await c.until(STARTED)
    cut = len(c.events)
    while c.types().count(COMMITTED) < 2:
        await c.event()
    told = [event for event in c.events if event["type"] in HEARD[:3]]
    assert [event["type"] for event in told] == 2 * [STARTED, STOPPED, COMMITTED]
    starts = [event["audio_start_ms"] for event in told if event["type"] == STARTED]
    assert starts == sorted(starts)
    assert c.events[cut]["type"] != "response.output_audio.delta"
    await c.until("response.done")


async def test_a_transcript_that_fails_leaves_it_to_the_length(c: Talker, server: Server) -> None:
    server.service.ears.behaviour.may_know = asyncio.Event()
    server.service.ears.behaviour.error = ValueError("broken")
    await c.say(speech())
    await until_interrupted(c)
    server.service.ears.behaviour.error = None


async def test_a_client_that_commits_means_it(c: Talker, server: Server) -> None:
    server.service.ears.behaviour.text = "Mm-hm."
    await c.say(speech(0.5, 0.0))
    await c.send("input_audio_buffer.commit")
    committed = await c.until(COMMITTED)
    (started,) = (event for event in c.events if event["type"] == STARTED)
    assert committed["item_id"] == started["item_id"]


async def test_a_client_that_clears_drops_what_was_held_back(c: Talker, server: Server) -> None:
    server.service.ears.behaviour.text = "Mm-hm."
    await c.say(speech(0.5, 0.0))
    await eventually(lambda: server.service.ears.counts.asked)
    await c.send("input_audio_buffer.clear")
    await c.until("input_audio_buffer.cleared")
    await eventually(lambda: server.service.ears.counts.open == 0)
    await say(c, server, "Stop!")
    await until_interrupted(c)
    assert c.types().count(STARTED) == 1


async def test_who_hangs_up_while_held_back_leaves_nothing(c: Talker, server: Server) -> None:
    server.service.ears.behaviour.may_know = asyncio.Event()
    server.service.ears.behaviour.may_finish = asyncio.Event()
    await c.say(speech())
    await eventually(lambda: server.service.ears.counts.open == 1)
    await c.socket.close()
    await eventually(lambda: server.service.ears.counts.open == 0)


async def test_who_speaks_on_after_the_answer_has_the_turn(
    server: Server, others: Endpoints
) -> None:
    """The same "yes" that is a backchannel answers a question that has just been asked."""
    server.solo.behaviour.chunks = 20
    others.deltas = ["Shall I?"]
    server.service.ears.behaviour.text = "Yes."
    async with talker(server.url) as c:
        vad = {**WORDS, "silence_duration_ms": 10_000}
        await c.update(audio={"input": {"turn_detection": vad}})
        await c.write("Ask me.")
        await c.send("response.create")
        await c.until("response.output_audio.delta")
        await c.say(speech(0.5, 0.0))
        await c.until("response.done")
        while STARTED not in c.types():
            # 20 ms of silence, at no more than the pace of a microphone.
            await c.say(bytes(960))
            with suppress(TimeoutError):
                async with asyncio.timeout(0.02):
                    c.events.append(await c.receive())
        await c.send("input_audio_buffer.commit")
        await c.until(COMMITTED)
        assert c.types().count(STARTED) == 1


async def test_interruptions_by_words_need_interrupt_response(c: Talker, server: Server) -> None:
    """Without it nothing stops the answer, and nothing is held back."""
    vad = {**WORDS, "interrupt_response": False, "create_response": False}
    await c.update(audio={"input": {"turn_detection": vad}})
    await say(c, server, "Mm-hm.")
    await c.until(COMMITTED)
    await c.send("response.cancel")
    await c.until("response.done")


async def test_with_speech_any_speech_interrupts(c: Talker, server: Server) -> None:
    session = await c.update(audio={"input": {"turn_detection": {"type": "server_vad"}}})
    assert session["audio"]["input"]["turn_detection"]["interrupt_on"] == "words", "as it was"
    vad = {"type": "server_vad", "interrupt_on": "speech"}
    session = await c.update(audio={"input": {"turn_detection": vad}})
    assert "interrupt_on" not in session["audio"]["input"]["turn_detection"], "as at OpenAI"
    server.service.ears.behaviour.text = "Mm-hm."
    await c.say(speech(0.5, 0.0))
    await until_interrupted(c)
