"""Whole turns: every event in order, what the chat is asked, and the sound of its answer."""

from __future__ import annotations

import audioop
import io

import numpy as np
import pytest
import soundfile
import soxr
from endpoints import Endpoints
from fake_service import FakeService, eventually, expected_pcm
from fake_transcription import expected_transcript
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.transcripts import SPEECH_RATE, TranscriptionRequest
from cantata.contract.model.recognizer import Sound
from cantata.speech_input.settings import RealtimeSettings
from talking import (
    ANSWER,
    HEARD,
    SPOKEN,
    TRANSCRIBED,
    WIRE_RATE,
    WRITTEN,
    part,
    speech,
    talker,
    words_so_far,
)

RECORDED_S = len(speech(0, 0)) / (2 * WIRE_RATE)


def said(sound: Sound) -> str:
    """What the fake model hears in it."""
    return expected_transcript(len(sound) / SPEECH_RATE, TranscriptionRequest()).text


async def test_a_spoken_turn(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(
            instructions="Be brief.", audio={"input": {"transcription": {"model": "whisper-1"}}}
        )
        c.events.clear()
        await c.say(speech())
        done = await c.until("response.done")
        told = [kind for kind in c.types() if kind != TRANSCRIBED[0]]
        assert told == [*HEARD, *ANSWER, TRANSCRIBED[1], *SPOKEN]
        assert len({event["event_id"] for event in c.events}) == len(c.events)

        system, user = others.asked[0]["messages"]
        assert others.asked[0]["model"] == "a-chat-model"
        assert others.keys == ["Bearer chat-key"]
        assert system == {"role": "system", "content": "Be brief."}
        (sound,) = server.service.ears.counts.sounds
        assert abs(len(sound) / SPEECH_RATE - RECORDED_S) < 0.3, "no more of the silence than that"
        assert user["content"] == said(sound)
        heard = part(c, TRANSCRIBED[1])
        assert heard["transcript"] == user["content"] == words_so_far(c)

        expected = encode_s16le(expected_pcm("The answer.", server.solo.behaviour))
        assert c.sound() == expected
        response = done["response"]
        assert response["status"] == "completed"
        assert response["output"][0]["content"] == [
            {"type": "output_audio", "transcript": "The answer."}
        ]
        seconds = len(expected) / 2 / WIRE_RATE
        assert response["usage"]["output_token_details"] == {
            "text_tokens": len("The answer."),
            "audio_tokens": np.ceil(seconds * 20),
        }
        user_item = part(c, "input_audio_buffer.committed")["item_id"]
        assert heard["item_id"] == user_item
        first, second = (e for e in c.events if e["type"] == "conversation.item.added")
        assert (first["item"]["id"], first["previous_item_id"]) == (user_item, None)
        (words,) = first["item"]["content"]
        assert words["transcript"] in (None, user["content"]), "null, not absent"
        assert second["previous_item_id"] == user_item
        assert second["item"]["id"] == response["output"][0]["id"]


async def test_the_times_of_a_turn_are_those_of_the_sound(server: Server) -> None:
    """The speech begins 0.5 s after the silence; the recording has its own quiet beginning."""
    async with talker(server.url) as c:
        for lead_s in (0.5, 1.5):
            before_ms = 0 if lead_s == 0.5 else len(speech()) * 1000 // (2 * WIRE_RATE)
            await c.say(speech(lead_s))
            started = await c.until("input_audio_buffer.speech_started")
            stopped = await c.until("input_audio_buffer.speech_stopped")
            await c.until("response.done")
            begins_ms = started["audio_start_ms"] - before_ms - lead_s * 1000
            assert -300 <= begins_ms < 0, "the padding comes before the speech"
            spoken_ms = len(speech(0, 0)) * 1000 / (2 * WIRE_RATE)
            ends_ms = stopped["audio_end_ms"] - before_ms - lead_s * 1000
            assert spoken_ms <= ends_ms + 300 <= spoken_ms + 1000


async def test_sentences_of_a_model_that_speaks_whole_texts_and_in_stereo(
    server: Server, others: Endpoints
) -> None:
    others.deltas = ["One. T", "wo is lo", "nger. And th", "ree"]
    async with talker(server.url, "?model=duo") as c:
        await c.write("Count.")
        await c.send("response.create")
        done = await c.until("response.done")
        assert done["response"]["status"] == "completed"
        sentences = [request.text for request in server.service.duo.counts.requests]
        assert sentences == ["One.", "Two is longer.", "And three"]
        how = server.service.duo.behaviour
        samples = sum(len(expected_pcm(text, how, 2)) for text in sentences)
        assert len(c.sound()) // 2 == pytest.approx(samples / 2, abs=2), "24 kHz, one channel"
        words = [e["delta"] for e in c.events if e["type"].endswith("transcript.delta")]
        assert words == others.deltas


async def test_a_written_turn_makes_no_sound(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(output_modalities=["text"], max_output_tokens=77)
        await c.write("Hello.")
        c.events.clear()
        await c.send("response.create", response={"metadata": {"a": "b"}})
        done = await c.until("response.done")
        assert c.types() == [*ANSWER, *WRITTEN]
        assert done["response"]["output"][0]["content"] == [
            {"type": "output_text", "text": "The answer."}
        ]
        assert done["response"]["metadata"] == {"a": "b"}
        assert others.asked[0]["max_tokens"] == 77
        await c.send("response.create")
        await c.until("response.done")
        roles = [message["role"] for message in others.asked[1]["messages"]]
        assert roles == ["user", "assistant"]
    assert server.solo.counts.asked == 0


async def test_without_turn_detection_the_client_commits(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(audio={"input": {"turn_detection": None}})
        c.events.clear()
        await c.say(speech())
        await c.send("input_audio_buffer.commit")
        await c.until("conversation.item.done")
        assert c.types() == HEARD[2:]
        assert others.asked == []
        await c.send("response.create", response={"output_modalities": ["text"]})
        await c.until("response.done")
        (user,) = others.asked[0]["messages"]
        (sound,) = server.service.ears.counts.sounds
        assert abs(len(sound) / SPEECH_RATE - RECORDED_S) < 0.5, "silence around it is left out"
        assert user["content"] == said(sound)
        await c.say(speech())
        await c.send("input_audio_buffer.clear")
        await c.until("input_audio_buffer.cleared")
        await c.send("input_audio_buffer.commit")
        assert (await c.error())["code"] == "input_audio_buffer_commit_empty"


async def test_telephone_sound_in_both_directions(server: Server, others: Endpoints) -> None:
    wide = np.frombuffer(speech(), "<i2")
    narrow = soxr.resample(wide, WIRE_RATE, 8000)
    telephone = {"type": "audio/pcmu"}
    async with talker(server.url) as c:
        await c.update(audio={"input": {"format": telephone}, "output": {"format": telephone}})
        await c.say(audioop.lin2ulaw(narrow.tobytes(), 2))
        stopped = await c.until("input_audio_buffer.speech_stopped")
        await c.until("response.done")
        samples = len(expected_pcm("The answer.", server.solo.behaviour))
        assert len(c.sound()) == pytest.approx(samples / 3, abs=2), "a byte for each sample"
        assert 0.8 < stopped["audio_end_ms"] * WIRE_RATE / 1000 / len(wide) <= 1
        assert others.asked[0]["messages"][-1]["role"] == "user"


async def test_create_response_false_leaves_the_answer_to_the_client(
    server: Server, others: Endpoints
) -> None:
    async with talker(server.url) as c:
        await c.update(
            audio={"input": {"turn_detection": {"type": "server_vad", "create_response": False}}}
        )
        await c.say(speech())
        await c.until("input_audio_buffer.committed")
        await c.until("conversation.item.done")
        await c.send("conversation.item.retrieve", item_id=c.events[-1]["item"]["id"])
        await c.until("conversation.item.retrieved")
        assert others.asked == []
        await c.send("response.create")
        await c.until("response.done")
        assert len(others.asked) == 1


async def test_a_silent_user_is_asked(server: Server, others: Endpoints) -> None:
    vad = {"type": "server_vad", "idle_timeout_ms": 1000}
    async with talker(server.url) as c:
        await c.update(output_modalities=["text"], audio={"input": {"turn_detection": vad}})
        await c.write("Hello.")
        await c.send("response.create")
        await c.until("response.done")
        event = await c.until("input_audio_buffer.timeout_triggered")
        committed = await c.until("input_audio_buffer.committed")
        assert committed["item_id"] == event["item_id"]
        await c.until("response.done")
        assert "silent" in others.asked[1]["messages"][-1]["content"]
        # Whoever speaks is not asked.
        await c.update(audio={"input": {"turn_detection": {**vad, "idle_timeout_ms": None}}})


async def test_an_answer_that_is_cut_is_incomplete(server: Server, others: Endpoints) -> None:
    others.finish = "length"
    async with talker(server.url) as c:
        await c.write("Tell me everything.")
        await c.send("response.create", response={"max_output_tokens": 2})
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "incomplete"
        assert response["status_details"]["reason"] == "max_output_tokens"
        assert c.sound()


async def test_an_answer_out_of_band(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.write("Remember me.")
        kept = c.events[-1]["item"]["id"]
        item = {
            "type": "message",
            "role": "system",
            "content": [{"type": "input_text", "text": "Classify."}],
        }
        reference = {"type": "item_reference", "id": kept}
        c.events.clear()
        await c.send(
            "response.create", response={"conversation": "none", "input": [item, reference]}
        )
        done = await c.until("response.done")
        assert done["response"]["conversation_id"] is None
        assert "conversation.item.added" not in c.types()
        assert [m["content"] for m in others.asked[0]["messages"]] == ["Classify.", "Remember me."]
        await c.send("conversation.item.retrieve", item_id=done["response"]["output"][0]["id"])
        assert (await c.error())["code"] == "item_not_found"


async def test_words_by_an_endpoint(others: Endpoints) -> None:
    service = FakeService()
    realtime = RealtimeSettings(others.chat, others.transcription)
    async with running(service, ServerSettings(realtime=realtime)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url) as c:
            await c.update(audio={"input": {"transcription": {}}})
            await c.say(speech())
            await c.until("response.done")
            heard = part(c, TRANSCRIBED[1])
            assert heard["transcript"] == "what the endpoint heard"
            assert others.asked[1]["messages"][0]["content"] == "what the endpoint heard"
            sound, rate = soundfile.read(io.BytesIO(others.sounds[0]))
            assert rate == 16000
            assert len(sound) / rate == pytest.approx(heard["usage"]["seconds"], abs=0.1)  # type: ignore[index]
            others.status = 500
            await c.say(speech())
            failed = await c.until("conversation.item.input_audio_transcription.failed")
            assert failed["error"]["code"] == "transcription_failed"
            done = await c.until("response.done")
            assert done["response"]["status"] == "failed"
            assert done["response"]["status_details"]["error"]["code"] == "transcription_failed"
