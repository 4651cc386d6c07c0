"""A session's settings: defaults, updates in part, the beta's names, and what is refused."""

from __future__ import annotations

from typing import Any

import pytest
from endpoints import Endpoints
from live_server import Server

from cantata.speech_input import cascade
from cantata.speech_input.semantic_end import weights
from talking import HEARD, speech, talker

needs_smart_turn = pytest.mark.skipif(weights() is None, reason="smart-turn is not installed")

PCM = {"type": "audio/pcm", "rate": 24000}


async def test_defaults_are_openais(server: Server) -> None:
    async with talker(server.url, "?model=gpt-realtime") as c:
        session = c.events[0]["session"]
        assert session["id"].startswith("sess_")
        assert session["object"] == "realtime.session"
        assert (session["type"], session["model"]) == ("realtime", "solo")
        assert session["output_modalities"] == ["audio"]
        assert session["max_output_tokens"] == "inf"
        assert session["audio"]["output"] == {"format": PCM, "voice": "clara", "speed": 1.0}
        assert session["audio"]["input"] == {
            "format": PCM,
            "transcription": None,
            "noise_reduction": None,
            "turn_detection": {
                "type": "server_vad",
                "threshold": 0.5,
                "prefix_padding_ms": 300,
                "silence_duration_ms": 500,
                "create_response": True,
                "interrupt_response": True,
                "idle_timeout_ms": None,
            },
        }


async def test_an_update_keeps_what_it_does_not_name(server: Server) -> None:
    async with talker(server.url) as c:
        await c.update(instructions="Be kind.", audio={"output": {"voice": "onyx", "speed": 1.2}})
        vad = {"type": "server_vad", "silence_duration_ms": 200}
        await c.update(audio={"input": {"turn_detection": vad}}, tracing=None)
        session = await c.update(audio={"input": {"turn_detection": {"threshold": 0.8}}})
        assert session["instructions"] == "Be kind."
        assert session["audio"]["output"] == {"format": PCM, "voice": "ben", "speed": 1.2}
        found = session["audio"]["input"]["turn_detection"]
        assert (found["silence_duration_ms"], found["threshold"]) == (200, 0.8)
        session = await c.update(audio={"input": {"turn_detection": None}})
        assert session["audio"]["input"]["turn_detection"] is None
        session = await c.update(output_modalities=["text"])
        assert session["audio"]["input"]["turn_detection"] is None
        assert session["audio"]["output"]["voice"] == "ben"


async def test_the_betas_fields_are_taken_and_todays_are_answered(server: Server) -> None:
    async with talker(server.url) as c:
        session = await c.update(
            modalities=["text", "audio"],
            voice="ben",
            input_audio_format="g711_ulaw",
            output_audio_format="pcm16",
            input_audio_transcription={"model": "whisper-1"},
            turn_detection={"type": "server_vad", "threshold": 0.7},
            max_response_output_tokens=100,
            temperature=0.8,
        )
        assert session["output_modalities"] == ["audio"]
        assert session["max_output_tokens"] == 100
        assert session["audio"]["output"] == {"format": PCM, "voice": "ben", "speed": 1.0}
        entry = session["audio"]["input"]
        assert entry["format"] == {"type": "audio/pcmu"}
        assert entry["transcription"]["model"] == "whisper-1"
        assert entry["turn_detection"]["threshold"] == 0.7


WRONG: list[tuple[dict[str, Any], str | None, str]] = [
    ({"output_modalities": ["audio", "text"]}, "session.output_modalities", "at most 1"),
    ({"output_modalities": []}, "session.output_modalities", "at least 1"),
    ({"type": "painting"}, "session.type", "'transcription'"),
    ({"include": ["everything"]}, "session.include", "logprobs"),
    (
        {"audio": {"input": {"noise_reduction": {"type": "near_field"}}}},
        "session.audio.input.noise_reduction",
        "valid: null",
    ),
    (
        {"input_audio_noise_reduction": {"type": "far_field"}},
        "session.audio.input.noise_reduction",
        "valid: null",
    ),
    (
        {"audio": {"input": {"transcription": {"language": "fr-CA"}}}},
        "session.audio.input.transcription.language",
        "valid: en, de",
    ),
    (
        {"audio": {"input": {"transcription": {"model": "nobody"}}}},
        "session.audio.input.transcription.model",
        "ears",
    ),
    ({"audio": {"output": {"speed": 2}}}, "session.audio.output.speed", "1.5"),
    ({"audio": {"output": {"voice": "nobody"}}}, "session.audio.output.voice", "clara"),
    ({"audio": {"input": {"format": {"type": "audio/mp3"}}}}, None, "audio/pcmu"),
    ({"audio": {"input": {"format": {**PCM, "rate": 16000}}}}, None, "24000"),
    (
        {"audio": {"input": {"turn_detection": {"type": "server_vad", "threshold": 2}}}},
        None,
        "1",
    ),
    (
        {"audio": {"input": {"turn_detection": {"type": "semantic_vad", "eagerness": "very"}}}},
        "session.audio.input.turn_detection.eagerness",
        "'auto'",
    ),
    ({"audio": {"input": {"turn_detection": {"type": "guess"}}}}, None, "server_vad"),
    ({"max_output_tokens": 0}, None, "1"),
    ({"max_output_tokens": "many"}, None, "inf"),
    ({"tools": [{"type": "mcp", "server_label": "f"}]}, "session.tools", "valid: function"),
    ({"prompt": {"id": "pmpt_1"}}, "session.prompt", "send instructions"),
    ({"tracing": True}, "session.tracing", "an object"),
    ({"truncation": {"type": "retention_ratio"}}, "session.truncation", '"disabled"'),
    ({"reasoning": {"effort": "low"}}, "session.reasoning", '"none"'),
    ({"parallel_tool_calls": 1}, "session.parallel_tool_calls", "boolean"),
    ({"instructions": 7}, "session.instructions", "string"),
    ({"audio": 7}, "session.audio", "dictionary"),
    ({"modalities": 7}, "session.output_modalities", "list"),
]


async def test_a_bad_value_is_named_and_changes_nothing(server: Server) -> None:
    async with talker(server.url) as c:
        before = await c.update(instructions="Stay.")
        for sent, param, said in WRONG:
            await c.send("session.update", session={"type": "realtime", **sent}, event_id="mine")
            error = await c.error()
            assert error["type"] == "invalid_request_error", sent
            assert error["event_id"] == "mine", sent
            assert error["param"].startswith(param or "session."), sent
            assert said in error["message"], sent
        assert await c.update() == before


async def test_what_sdks_send_with_every_session_is_taken(server: Server) -> None:
    """OpenAI's Agents SDKs ask for traces, which are in OpenAI's dashboard only."""
    named = {"workflow_name": "Calls", "group_id": "g", "metadata": {}}
    async with talker(server.url) as c:
        before = await c.update()
        for tracing in ("auto", named, None):
            sent = {"tracing": tracing, "truncation": "auto", "parallel_tool_calls": True}
            assert await c.update(prompt=None, reasoning={"effort": None}, **sent) == before
        changed = await c.update(truncation="disabled", parallel_tool_calls=False)
        assert (changed["truncation"], changed["parallel_tool_calls"]) == ("disabled", False)


SEMANTIC = {"audio": {"input": {"turn_detection": {"type": "semantic_vad"}}}}


async def test_without_its_model_semantic_vad_is_refused_with_the_extra_that_brings_it(
    server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(cascade, "weights", lambda: None)
    async with talker(server.url) as c:
        before = await c.update()
        await c.send("session.update", session={"type": "realtime", **SEMANTIC})
        error = await c.error()
        assert error["type"] == "invalid_request_error"
        assert error["param"] == "session.audio.input.turn_detection.type"
        assert "pip install 'cantata[smart-turn]'" in error["message"]
        assert "valid without it: server_vad, null" in error["message"]
        assert await c.update() == before


@needs_smart_turn
async def test_semantic_vad_has_openais_defaults(server: Server) -> None:
    async with talker(server.url) as c:
        session = await c.update(**SEMANTIC)
        found = session["audio"]["input"]["turn_detection"]
        assert found == {
            "type": "semantic_vad",
            "eagerness": "auto",
            "create_response": True,
            "interrupt_response": True,
        }
        session = await c.update(audio={"input": {"turn_detection": {"eagerness": "low"}}})
        assert session["audio"]["input"]["turn_detection"] == {**found, "eagerness": "low"}
        session = await c.update(audio={"input": {"turn_detection": {"interrupt_on": "speech"}}})
        assert session["audio"]["input"]["turn_detection"]["interrupt_on"] == "speech"
        await c.send(
            "session.update",
            session={
                "type": "realtime",
                "audio": {"input": {"turn_detection": {"interrupt_on": 1}}},
            },
        )
        assert (await c.error())["param"] == "session.audio.input.turn_detection.interrupt_on"
        session = await c.update(audio={"input": {"turn_detection": {"type": "server_vad"}}})
        assert session["audio"]["input"]["turn_detection"]["silence_duration_ms"] == 500


@needs_smart_turn
async def test_a_turn_that_sounds_finished_is_answered(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(output_modalities=["text"], **SEMANTIC)
        c.events.clear()
        await c.say(speech())
        # A second of silence follows; by itself, only four would end the turn.
        await c.until("input_audio_buffer.speech_stopped")
        await c.until("response.done")
        assert c.types()[: len(HEARD)] == HEARD
        assert len(others.asked) == 1


async def test_the_voice_is_fixed_once_it_was_heard(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.write("Speak.")
        await c.update(audio={"output": {"voice": "ben"}})
        await c.send("response.create")
        await c.until("response.done")
        assert server.solo.counts.requests[0].voice == "ben"
        for change in ("session.update", "response.create"):
            body = {"audio": {"output": {"voice": "clara"}}}
            key = change.split(".")[0]
            await c.send(change, **{key: body})
            assert (await c.error())["code"] == "cannot_update_voice"
        await c.update(audio={"output": {"voice": "onyx", "speed": 1.5}})
        await c.send("response.create")
        await c.until("response.done")
        assert [(r.voice, r.speed) for r in server.solo.counts.requests[1:]] == [("ben", 1.5)]


async def test_settings_of_one_answer_are_not_the_sessions(
    server: Server, others: Endpoints
) -> None:
    async with talker(server.url) as c:
        await c.update(instructions="Always.")
        await c.write("Hello.")
        for response in ({"instructions": "Once.", "output_modalities": ["text"]}, {}):
            await c.send("response.create", response=response)
            await c.until("response.done")
        assert [asked["messages"][0]["content"] for asked in others.asked] == ["Once.", "Always."]
        assert server.solo.counts.started == 1
