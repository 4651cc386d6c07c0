"""Sessions with a model that hears: what it is given, what its answer becomes, and its end."""

from __future__ import annotations

import asyncio
import base64

import numpy as np
import openai
import pytest
import soxr
from endpoints import Endpoints
from fake_chat import FakeChatModel
from fake_service import FakeService, eventually
from live_server import Server, running

from cantata.api.realtime.conversation import Content, Conversation, Item
from cantata.api.settings import ServerSettings
from cantata.contract.data.chat import AudioPart, Message, MessagePart, Modality, Role, TextPart
from cantata.contract.data.errors import RequestFailed
from cantata.speech_input.settings import RealtimeSettings
from cantata.speech_input.sound import HEARD_RATE
from talking import (
    ANSWER,
    HEARD,
    SPOKEN,
    TRANSCRIBED,
    WIRE_RATE,
    WRITTEN,
    Talker,
    assert_idle,
    cancelled,
    part,
    speech,
    talker,
    words_so_far,
)

ANSWERED = "The answer of a model that hears."


@pytest.fixture
def omni(server: Server) -> FakeChatModel:
    model = server.service.omni
    model.behaviour.text = ANSWERED
    return model


@pytest.fixture
def endless(omni: FakeChatModel) -> FakeChatModel:
    """Every piece of its answer of minutes sounds for a second."""
    omni.behaviour.text = "One two three four five. " * 40
    omni.behaviour.samples = omni.sample_rate
    return omni


def asked(model: FakeChatModel, number: int = -1) -> tuple[Message, ...]:
    return model.counts.requests[number].messages


def collect_sound(part: MessagePart) -> np.ndarray:
    assert isinstance(part, AudioPart)
    assert part.sample_rate == HEARD_RATE
    return part.samples[:, 0]


async def begin(c: Talker) -> str:
    """An answer that sounds; its item's id."""
    await c.write("Go on.")
    await c.send("response.create")
    return str((await c.until("response.output_audio.delta"))["item_id"])


async def test_it_hears_the_turn_itself(
    server: Server, others: Endpoints, omni: FakeChatModel
) -> None:
    async with talker(server.url, "?model=omni") as c:
        session = await c.update(instructions="Be brief.", audio={"output": {"voice": "chelsie"}})
        assert (session["model"], session["audio"]["output"]["voice"]) == ("omni", "chelsie")
        c.events.clear()
        await c.say(speech())
        done = await c.until("response.done")
        assert c.types() == [*HEARD, *ANSWER, *spoken_in_turns(c)]

        system, user = asked(omni)
        assert system == Message(Role.SYSTEM, (TextPart("Be brief."),))
        assert user.role is Role.USER
        (heard,) = user.parts
        start_ms = part(c, HEARD[0])["audio_start_ms"]
        end_ms = part(c, HEARD[1])["audio_end_ms"]
        assert isinstance(start_ms, int)
        assert isinstance(end_ms, int)
        sent = soxr.resample(np.frombuffer(speech(), "<i2") / 32768, WIRE_RATE, HEARD_RATE)
        expected = sent[start_ms * 16 : end_ms * 16]
        assert len(collect_sound(heard)) == pytest.approx(len(expected), abs=512)
        size = min(len(collect_sound(heard)), len(expected))
        alike = np.corrcoef(collect_sound(heard)[:size], expected[:size])[0, 1]
        assert alike > 0.99, "what was said, and not a sample late"

        request = omni.counts.requests[0]
        assert (request.voice, request.max_tokens) == ("chelsie", None)
        response = done["response"]
        assert response["status"] == "completed"
        assert response["output"][0]["content"] == [
            {"type": "output_audio", "transcript": ANSWERED}
        ]
        pieces = -(-len(ANSWERED) // 3)
        seconds = pieces * omni.behaviour.samples / omni.sample_rate
        assert len(c.sound()) / 2 / WIRE_RATE == pytest.approx(seconds, abs=0.001)
        usage = response["usage"]
        assert usage["input_tokens"] == 2
        assert usage["output_token_details"] == {
            "text_tokens": pieces,
            "audio_tokens": np.ceil(seconds * 20),
        }
    assert others.asked == [], "no other chat"
    assert server.solo.counts.asked == 0, "no other voice"
    assert (omni.counts.finished, omni.counts.aborted) == (1, 0)


def spoken_in_turns(c: Talker) -> list[str]:
    """Text and sound come as they are made: each kind many times, before all that ends them."""
    deltas = [kind for kind in c.types() if kind in SPOKEN[:2]]
    assert set(deltas) == set(SPOKEN[:2])
    return [*deltas, *SPOKEN[2:]]


async def test_openais_own_client_talks_with_it(server: Server, omni: FakeChatModel) -> None:
    sound, text = b"", ""
    async with (
        openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="unused") as client,
        client.realtime.connect(model="omni") as connection,
    ):
        await connection.session.update(
            session={"type": "realtime", "audio": {"output": {"voice": "alloy"}}}
        )
        await connection.input_audio_buffer.append(audio=base64.b64encode(speech()).decode())
        async for event in connection:
            match event.type:
                case "error":
                    raise AssertionError(event.error)
                case "session.updated":
                    assert event.session.model == "omni"  # type: ignore[union-attr]
                case "response.output_audio.delta":
                    sound += base64.b64decode(event.delta)
                case "response.output_audio_transcript.delta":
                    text += event.delta
                case "response.done":
                    assert event.response.status == "completed"
                    break
    assert text == ANSWERED
    assert sound
    assert omni.counts.requests[0].voice == "ethan"


async def test_the_users_words_are_told_to_whoever_asks(
    server: Server, omni: FakeChatModel
) -> None:
    async with talker(server.url, "?model=omni") as c:
        await c.update(audio={"input": {"transcription": {"model": "whisper-1"}}})
        await c.say(speech())
        await c.until(TRANSCRIBED[1])
        transcript = str(part(c, TRANSCRIBED[1])["transcript"])
        assert transcript.startswith("word0 word1 ")
        assert transcript == words_so_far(c)
        if "response.done" not in c.types():
            await c.until("response.done")
    (user,) = asked(omni)
    assert len(collect_sound(user.parts[0])), "the model hears the sound all the same"


async def test_words_that_cannot_be_found_fail_nothing_else(
    others: Endpoints, omni: FakeChatModel, server: Server
) -> None:
    others.status = 500
    service = FakeService()
    service.omni.behaviour.text = ANSWERED
    realtime = RealtimeSettings(transcription=others.transcription)
    async with running(service, ServerSettings(realtime=realtime)) as own:
        await eventually(lambda: service.ready)
        async with talker(own.url, "?model=omni") as c:
            await c.update(audio={"input": {"transcription": {}}})
            await c.say(speech())
            done = await c.until("response.done")
            assert done["response"]["status"] == "completed"
            failed = "conversation.item.input_audio_transcription.failed"
            if failed not in c.types():
                await c.until(failed)


async def test_a_barge_in_ends_the_model(server: Server, endless: FakeChatModel) -> None:
    async with talker(server.url, "?model=omni") as c:
        await begin(c)
        assert endless.counts.open == 1
        await c.say(speech())
        await c.until("input_audio_buffer.speech_started")
        await c.until("response.done")
        place = [event["type"] for event in c.events].index("input_audio_buffer.speech_started")
        assert [event["type"] for event in c.events[place + 1 :]] == SPOKEN[2:], "nothing follows"
        cancelled(c, "turn_detected")
        await eventually(lambda: endless.counts.open == 0)
        assert endless.counts.aborted == 1
        made = endless.counts.events
        endless.behaviour.text = ANSWERED
        await c.until("response.done")
        assert c.events[-1]["response"]["status"] == "completed"
        assert made < 200, "it was stopped long before its 700 events"
        # What it said before is part of what it is asked now: as much as was heard.
        first, answer, user = asked(endless)
        assert first == Message(Role.USER, (TextPart("Go on."),))
        (said,) = answer.parts
        assert isinstance(said, TextPart)
        assert answer.role is Role.ASSISTANT
        assert said.text
        assert ("One two three four five. " * 40).startswith(said.text)
        assert len(collect_sound(user.parts[0])) > HEARD_RATE
    await assert_idle(server.url)


async def test_a_cancel_and_a_hang_up_end_the_model(server: Server, endless: FakeChatModel) -> None:
    async with talker(server.url, "?model=omni") as c:
        await begin(c)
        await c.send("response.cancel")
        await c.until("response.done")
        cancelled(c, "client_cancelled")
        await eventually(lambda: endless.counts.open == 0)
        await begin(c)
    await eventually(lambda: endless.counts.open == 0)
    assert endless.counts.aborted == 2
    await assert_idle(server.url)


async def test_a_cancel_before_the_first_sound(server: Server, omni: FakeChatModel) -> None:
    omni.behaviour.may_continue = asyncio.Event()
    async with talker(server.url, "?model=omni") as c:
        await c.write("Hello.")
        await c.send("response.create")
        await c.until("response.output_audio_transcript.delta")
        await c.send("response.cancel")
        await c.until("response.done")
        assert c.sound() == b""
        omni.behaviour.may_continue = None
        await c.send("response.create")
        done = await c.until("response.done")
        assert done["response"]["status"] == "completed"
        assert [message.role for message in asked(omni)] == [Role.USER], "nothing was heard"


async def test_what_was_not_heard_is_forgotten(server: Server, omni: FakeChatModel) -> None:
    omni.behaviour.samples = 1600
    async with talker(server.url, "?model=omni") as c:
        await c.write("Speak.")
        await c.send("response.create")
        item = (await c.until("response.done"))["response"]["output"][0]
        duration_ms = len(c.sound()) * 1000 // (2 * WIRE_RATE)
        await c.send(
            "conversation.item.truncate",
            item_id=item["id"],
            content_index=0,
            audio_end_ms=duration_ms // 2,
        )
        await c.until("conversation.item.truncated")
        await c.send("response.create")
        await c.until("response.done")
        (kept,) = asked(omni)[-1].parts
        assert kept == TextPart("The answer of a")


async def test_a_written_turn_makes_no_sound(server: Server, omni: FakeChatModel) -> None:
    async with talker(server.url, "?model=omni") as c:
        await c.update(output_modalities=["text"], max_output_tokens=4)
        await c.write("Hello.")
        c.events.clear()
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert c.types() == [*ANSWER, *WRITTEN]
        assert response["status"] == "incomplete"
        assert response["status_details"]["reason"] == "max_output_tokens"
        assert response["output"][0]["content"] == [{"type": "output_text", "text": ANSWERED[:12]}]
        assert response["usage"]["output_tokens"] == 4
    request = omni.counts.requests[0]
    assert (request.voice, request.max_tokens) == (None, 4)


async def test_a_model_that_does_not_speak_answers_in_text(
    server: Server, others: Endpoints
) -> None:
    scribe = FakeChatModel("scribe", frozenset({Modality.TEXT, Modality.AUDIO}), (), 0)
    scribe.behaviour.text = ANSWERED
    server.service.chat_models = {**server.service.chat_models, "scribe": scribe}
    async with talker(server.url, "?model=scribe") as c:
        session = c.events[0]["session"]
        assert session["output_modalities"] == ["text"]
        assert session["audio"]["output"]["voice"] is None
        await c.send("session.update", session={"output_modalities": ["audio"]})
        error = await c.error()
        assert error["param"] == "session.output_modalities"
        assert '["text"]' in str(error["message"])
        await c.send("response.create", response={"output_modalities": ["audio"]})
        assert (await c.error())["param"] == "response.output_modalities"
        c.events.clear()
        await c.say(speech())
        await c.until("response.done")
        assert c.types() == [*HEARD, *ANSWER, *WRITTEN]
        (user,) = asked(scribe)
        assert len(collect_sound(user.parts[0]))


@pytest.mark.parametrize("limits", [RealtimeSettings(max_sound_s=8)])
async def test_the_sound_of_items_is_heard(server: Server, omni: FakeChatModel) -> None:
    sound = np.arange(-3000, 3000, dtype="<i2")
    encoded = base64.b64encode(sound.tobytes()).decode()
    content = [
        {"type": "input_text", "text": "Listen:"},
        {"type": "input_audio", "audio": encoded},
    ]
    async with talker(server.url, "?model=omni") as c:
        for data, code in (("", "invalid_audio"), ("AAAA" * 140_000, "body_too_large")):
            wrong = [{"type": "input_audio", "audio": data}]
            item = {"type": "message", "role": "user", "content": wrong}
            await c.send("conversation.item.create", item=item)
            assert (await c.error())["code"] == code
        item = {"type": "message", "role": "user", "content": content}
        await c.send("conversation.item.create", item=item)
        await c.send("response.create")
        await c.until("response.done")
    (message,) = asked(omni)
    assert message.parts[0] == TextPart("Listen:")
    heard = collect_sound(message.parts[1])
    assert len(heard) == len(sound) * HEARD_RATE // WIRE_RATE
    expected = soxr.resample(sound / 32768, WIRE_RATE, HEARD_RATE)
    np.testing.assert_allclose(heard[200:-200], expected[200:-200], atol=0.002)


async def test_a_silent_user_is_asked(server: Server, omni: FakeChatModel) -> None:
    vad = {"type": "server_vad", "idle_timeout_ms": 1000}
    async with talker(server.url, "?model=omni") as c:
        await c.update(audio={"input": {"turn_detection": vad}})
        await c.write("Hello.")
        await c.send("response.create")
        await c.until("response.done")
        await c.until("input_audio_buffer.timeout_triggered")
        await c.until("response.done")
        (said,) = asked(omni)[-1].parts
        assert isinstance(said, TextPart)
        assert "silent" in said.text
        await c.update(audio={"input": {"turn_detection": {**vad, "idle_timeout_ms": None}}})


async def test_what_it_cannot_do_is_refused(server: Server, omni: FakeChatModel) -> None:
    async with talker(server.url, "?model=omni") as c:
        before = await c.update()
        for sent, param, said in (
            ({"audio": {"output": {"speed": 1.2}}}, "session.audio.output.speed", "valid: 1"),
            ({"audio": {"output": {"voice": "nobody"}}}, "session.audio.output.voice", "chelsie"),
            ({"model": "solo"}, "session.model", "?model=solo"),
            ({"model": "nobody"}, "session.model", "solo, duo, omni"),
        ):
            await c.send("session.update", session=sent)
            error = await c.error()
            assert error["param"] == param
            assert said in str(error["message"])
        for same in ("omni", "gpt-realtime"):
            assert await c.update(model=same) == before
        # An answer to nothing.
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "failed"
        assert "empty" in response["status_details"]["error"]["message"]


async def test_a_failure_is_the_answers_alone(server: Server, omni: FakeChatModel) -> None:
    omni.behaviour.fail_after, omni.behaviour.error = 3, RequestFailed("a stage failed")
    async with talker(server.url, "?model=omni") as c:
        await c.write("Hello.")
        for status in ("failed", "completed"):
            await c.send("response.create")
            response = (await c.until("response.done"))["response"]
            assert response["status"] == status
            omni.behaviour.fail_after = None
    await assert_idle(server.url)


async def test_of_a_conversation_that_is_too_long_the_end_is_followed(
    server: Server, omni: FakeChatModel
) -> None:
    omni.behaviour.max_messages = 3
    async with talker(server.url, "?model=omni") as c:
        await c.update(instructions="Be brief.")
        for number in range(6):
            await c.write(f"Number {number}.")
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "completed"
        said = [message.parts for message in asked(omni)]
        assert said == [(TextPart(text),) for text in ("Be brief.", "Number 4.", "Number 5.")]
        omni.behaviour.max_messages = 0
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert response["status_details"]["error"]["code"] == "context_length_exceeded"
    await assert_idle(server.url)


@pytest.mark.parametrize("limits", [RealtimeSettings(max_ahead_s=2)])
async def test_sound_is_not_made_far_ahead_of_its_listener(
    server: Server, endless: FakeChatModel
) -> None:
    async with talker(server.url, "?model=omni") as c:
        loop = asyncio.get_running_loop()
        before = loop.time()
        await begin(c)
        while len(c.sound()) < 4 * 2 * WIRE_RATE:
            await c.until("response.output_audio.delta")
        # What was received after the first two seconds, and a piece, had to wait for its time.
        assert len(c.sound()) / (2 * WIRE_RATE) < loop.time() - before + 3.5
        await c.send("response.cancel")
        await c.until("response.done")


def test_the_oldest_sound_of_a_conversation_goes() -> None:
    conversation = Conversation(max_items=10, max_sound_s=5)
    for name, seconds in (("a", 2), ("b", 0), ("c", 3), ("d", 1), ("e", 5)):
        sound = np.zeros(seconds * HEARD_RATE, np.int16) if seconds else None
        conversation.add(Item(name, "user", [Content("input_audio", sound=sound)]))
        gone = list(conversation.shorten())
        assert gone == {"d": ["a"], "e": ["b", "c", "d"]}.get(name, [])
    assert [item.id for item in conversation.items] == ["e"]
