"""Sessions that only transcribe: how they begin, what they send, what they refuse."""

from __future__ import annotations

import asyncio
import base64
from dataclasses import replace
from typing import Any

import openai
import pytest
from endpoints import Endpoints
from fake_service import FakeService, eventually
from fake_transcription import FakeTranscriptionModel
from live_server import Server, running

from cantata.api.settings import ServerSettings
from cantata.contract.data.errors import RequestFailed
from cantata.speech_input.settings import RealtimeSettings
from talking import HEARD, TRANSCRIBED, Event, Talker, speech, talker, words_so_far

INTENT = "?intent=transcription"
LOGPROBS = "item.input_audio_transcription.logprobs"
BETA: dict[str, Any] = {"additional_headers": {"OpenAI-Beta": "realtime=v1"}}


async def listen(c: Talker, **session: Any) -> Event:
    await c.send("session.update", session={"type": "transcription", **session})
    return dict((await c.until("session.updated"))["session"])


def vad(**fields: Any) -> dict[str, Any]:
    return {"type": "server_vad", **fields}


@pytest.mark.parametrize("query", [INTENT, f"{INTENT}&model=whisper-1", "?model=gpt-realtime"])
async def test_what_is_said_becomes_words_and_nothing_else(
    server: Server, others: Endpoints, query: str
) -> None:
    async with talker(server.url, query) as c:
        session = await listen(
            c, audio={"input": {"transcription": {"model": "gpt-4o-transcribe"}}}
        )
        assert (session["type"], session["object"]) == (
            "transcription",
            "realtime.transcription_session",
        )
        assert set(session) == {"object", "id", "type", "expires_at", "audio", "include"}
        assert set(session["audio"]) == {"input"}
        assert session["audio"]["input"]["turn_detection"] == vad(
            threshold=0.5, prefix_padding_ms=300, silence_duration_ms=500
        )
        c.events.clear()
        await c.say(speech())
        first = await c.until(TRANSCRIBED[1])
        told = [kind for kind in c.types() if kind != TRANSCRIBED[0]]
        assert told == [*HEARD, TRANSCRIBED[1]]
        assert first["transcript"] == words_so_far(c)
        assert first["usage"]["type"] == "duration"
        assert 3 < first["usage"]["seconds"] < 5
        await c.say(speech())
        second = await c.until(TRANSCRIBED[1])
        commits = [e for e in c.events if e["type"] == "input_audio_buffer.committed"]
        assert [(e["item_id"], e["previous_item_id"]) for e in commits] == [
            (first["item_id"], None),
            (second["item_id"], first["item_id"]),
        ]
    assert others.asked == []
    assert server.service.ears.counts.finished == 2


async def test_words_come_while_somebody_speaks(server: Server) -> None:
    async with talker(server.url, INTENT) as c:
        await listen(c, audio={"input": {"turn_detection": vad(threshold=0.3)}})
        c.events.clear()
        await c.say(speech(0.5, 0.0), piece=12_000)
        await c.until(TRANSCRIBED[0])
        assert "input_audio_buffer.speech_stopped" not in c.types()
        began = next(e for e in c.events if e["type"] == "input_audio_buffer.speech_started")
        assert c.events[-1]["item_id"] == began["item_id"]
        await c.say(bytes(48_000))
        done = await c.until(TRANSCRIBED[1])
        assert done["transcript"] == words_so_far(c)


async def test_the_betas_event_has_the_betas_answer(server: Server) -> None:
    sent = {
        "input_audio_format": "pcm16",
        "input_audio_transcription": {
            "model": "gpt-4o-mini-transcribe",
            "language": "de",
            "prompt": "Herr Holle",
        },
        "turn_detection": vad(silence_duration_ms=400),
        "include": [LOGPROBS],
    }
    for options in (BETA, {}):
        async with talker_of_any(server.url, INTENT, **options) as c:
            await c.send("transcription_session.update", session=sent)
            session = (await c.until("transcription_session.updated"))["session"]
            assert session["input_audio_transcription"]["language"] == "de"
            assert session["turn_detection"]["silence_duration_ms"] == 400
            assert (session["input_audio_format"], session["include"]) == ("pcm16", [LOGPROBS])
            c.events.clear()
            await c.say(speech())
            await c.until(TRANSCRIBED[1])
            created = "created" if options else "added"
            assert f"conversation.item.{created}" in c.types()
        request = server.service.ears.counts.requests[-1]
        assert (request.language, request.prompt, request.logprobs) == ("de", "Herr Holle", True)


class talker_of_any:  # noqa: N801
    """As `talker`, for either name of the first event."""

    def __init__(self, url: str, query: str, **options: Any) -> None:
        from websockets.asyncio.client import connect

        address = url.replace("http", "ws", 1) + "/v1/realtime" + query
        self._connect = connect(address, max_size=None, close_timeout=0.5, **options)
        self._first = "transcription_session.created" if options else "session.created"

    async def __aenter__(self) -> Talker:
        one = Talker(await self._connect.__aenter__())
        await one.until(self._first)
        return one

    async def __aexit__(self, *error: Any) -> None:
        await self._connect.__aexit__(*error)


async def test_log_probabilities_are_sent_to_whoever_includes_them(server: Server) -> None:
    async with talker(server.url, INTENT) as c:
        await listen(c, include=[LOGPROBS])
        await c.say(speech())
        done = await c.until(TRANSCRIBED[1])
        assert "".join(one["token"] for one in done["logprobs"]) == done["transcript"].replace(
            " ", ""
        )
        assert done["logprobs"][0] == {"token": "word0", "bytes": [*b"word0"], "logprob": -0.25}
        told = [e for e in c.events if e["type"] == TRANSCRIBED[0]]
        assert sum(len(e["logprobs"]) for e in told) == len(done["logprobs"])
        await listen(c, include=[])
        await c.say(speech())
        assert "logprobs" not in await c.until(TRANSCRIBED[1])


async def test_without_turn_detection_words_are_found_before_the_commit(server: Server) -> None:
    counts = server.service.ears.counts
    async with talker(server.url, INTENT) as c:
        await listen(c, audio={"input": {"turn_detection": None}})
        c.events.clear()
        await c.say(speech())
        await eventually(lambda: counts.open == 1 and counts.asked)
        await c.send("input_audio_buffer.commit")
        done = await c.until(TRANSCRIBED[1])
        assert done["transcript"] == words_so_far(c)
        told = [kind for kind in c.types() if kind != TRANSCRIBED[0]]
        assert told == [*HEARD[2:], TRANSCRIBED[1]]
        # A buffer that is cleared frees its window.
        await c.say(speech())
        await eventually(lambda: counts.open == 1)
        await c.send("input_audio_buffer.clear")
        await c.until("input_audio_buffer.cleared")
        await eventually(lambda: counts.open == 0)
        await c.say(bytes(48_000))
        await c.send("input_audio_buffer.commit")
        assert (await c.until(TRANSCRIBED[1]))["transcript"] == ""
    assert counts.finished == 1


async def test_whoever_leaves_while_speaking_frees_the_window(server: Server) -> None:
    counts = server.service.ears.counts
    async with talker(server.url, INTENT) as c:
        await c.say(speech(0.5, 0.0))
        await eventually(lambda: counts.open == 1)
    await eventually(lambda: counts.open == 0)
    assert counts.finished == 0


async def test_what_only_conversations_have_is_refused(server: Server, others: Endpoints) -> None:
    item = {"type": "message", "role": "user", "content": [{"type": "input_text", "text": "Hi."}]}
    async with talker(server.url, INTENT) as c:
        for kind, fields in (
            ("response.create", {}),
            ("conversation.item.create", {"item": item}),
        ):
            await c.send(kind, event_id="mine", **fields)
            error = await c.error()
            assert (error["code"], error["event_id"]) == ("transcription_session", "mine")
            assert "only transcribes" in str(error["message"])
        refused: list[tuple[dict[str, Any], str]] = [
            ({"type": "realtime"}, "session.type"),
            ({"audio": {"input": {"transcription": None}}}, "session.audio.input.transcription"),
            (
                {"audio": {"input": {"turn_detection": vad(idle_timeout_ms=2000)}}},
                "session.audio.input.turn_detection.idle_timeout_ms",
            ),
            (
                {"audio": {"input": {"transcription": {"language": "xx"}}}},
                "session.audio.input.transcription.language",
            ),
            (
                {"audio": {"input": {"transcription": {"languages": ["de", "xx"]}}}},
                "session.audio.input.transcription.languages",
            ),
        ]
        before = await listen(c)
        for sent, param in refused:
            await c.send("session.update", session={"type": "transcription", **sent})
            assert (await c.error())["param"] == param
        assert await listen(c) == before
    assert others.asked == []


async def test_failures_are_told_by_item(server: Server) -> None:
    server.service.ears.behaviour.error = RequestFailed("the speech could not be recognized")
    async with talker(server.url, INTENT) as c:
        await c.say(speech())
        failed = await c.until("conversation.item.input_audio_transcription.failed")
        assert failed["error"]["code"] == "request_failed"
        assert "could not be recognized" in failed["error"]["message"]
        server.service.ears.behaviour.error = None
        await c.say(speech())
        await c.until(TRANSCRIBED[1])
    server.service.ears.behaviour.full = True
    with pytest.raises(Exception, match="429"):
        async with talker(server.url, INTENT):
            pass


async def test_a_session_may_name_its_model(server: Server) -> None:
    deaf = FakeTranscriptionModel("hearer", ("fr",), has_timestamps=False)
    server.service.transcription_models = {**server.service.transcription_models, "hearer": deaf}
    async with talker(server.url, INTENT) as c:
        for spoken in ({"language": "fr-CA"}, {"languages": ["fr"]}):
            transcription = {"model": "hearer", "language": None, **spoken}
            await listen(c, audio={"input": {"transcription": transcription}})
            await c.say(speech())
            await c.until(TRANSCRIBED[1])
    assert [request.language for request in deaf.counts.requests] == ["fr-CA", "fr"]
    assert server.service.ears.counts.requests == []


async def test_an_endpoint_may_transcribe(others: Endpoints) -> None:
    service = FakeService()
    service.transcription_models = {}
    realtime = replace(RealtimeSettings(), transcription=others.transcription)
    async with running(service, ServerSettings(realtime=realtime)) as server:
        await eventually(lambda: service.ready)
        async with talker(server.url, INTENT) as c:
            transcription = {"language": "de", "prompt": "Holle"}
            await listen(c, audio={"input": {"transcription": transcription}})
            await c.say(speech())
            done = await c.until(TRANSCRIBED[1])
            assert done["transcript"] == words_so_far(c) == "what the endpoint heard"
            await c.send("session.update", session={"type": "transcription", "include": [LOGPROBS]})
            assert (await c.error())["param"] == "session.include"
    assert others.forms[0]["language"] == "de"
    assert others.forms[0]["prompt"] == "Holle"


async def test_openais_client_transcribes(server: Server) -> None:
    client = openai.AsyncOpenAI(base_url=f"{server.url}/v1", api_key="none", max_retries=0)
    query = {"intent": "transcription"}
    async with client, client.realtime.connect(extra_query=query) as connection:
        await connection.session.update(
            session={
                "type": "transcription",
                "audio": {
                    "input": {
                        "format": {"type": "audio/pcm", "rate": 24000},
                        "transcription": {"model": "gpt-4o-transcribe", "language": "en"},
                        "turn_detection": {"type": "server_vad"},
                    }
                },
                "include": ["item.input_audio_transcription.logprobs"],
            }
        )
        await connection.input_audio_buffer.append(audio=base64.b64encode(speech()).decode())
        words = ""
        async with asyncio.timeout(30):
            async for event in connection:
                assert event.type != "error", event
                if event.type == "conversation.item.input_audio_transcription.delta":
                    words += event.delta or ""
                if event.type == "conversation.item.input_audio_transcription.completed":
                    break
        assert event.type == "conversation.item.input_audio_transcription.completed"
        assert event.transcript == words
        assert event.usage.type == "duration"
        assert event.logprobs
        assert event.logprobs[0].token == "word0"
