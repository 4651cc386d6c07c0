"""WebSocket /v1/audio/speech/stream: errors are answered, and the socket stays open."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from fake_service import eventually
from live_server import Server, until_still
from socket_client import Client, client

from cantata.api.settings import ServerSettings

VIOLATION = "protocol_violation"
INVALID = "invalid_value"

BAD_MESSAGES: list[tuple[str | bytes, str, str]] = [
    ("{", VIOLATION, "not valid JSON"),
    ("", VIOLATION, "not valid JSON"),
    ("[]", VIOLATION, "JSON object"),
    ("null", VIOLATION, "JSON object"),
    ('"input.text"', VIOLATION, "JSON object"),
    ("{}", VIOLATION, "'input.text'"),
    ('{"type": 5}', VIOLATION, "'input.text'"),
    ('{"type": "response.create"}', VIOLATION, "'input.text'"),
    (b"\x00\x01", VIOLATION, "binary"),
    ('{"type": "input.text"}', INVALID, "text is required"),
    ('{"type": "input.text", "text": 5}', INVALID, "valid string"),
    ('{"type": "input.text", "text": "a", "context_id": 5}', INVALID, "context_id"),
    ('{"type": "input.done"}', VIOLATION, "without any text"),
    ('{"type": "input.commit"}', VIOLATION, "without any text"),
    ('{"type": "session.config", "speed": 9}', INVALID, "speed"),
    ('{"type": "session.config", "speed": "1"}', INVALID, "speed"),
    ('{"type": "session.config", "seed": 1.5}', INVALID, "seed"),
    ('{"type": "session.config", "voice": ["a"]}', INVALID, "voice"),
    ('{"type": "session.config", "voice": "bob"}', "voice_not_found", "clara, ben"),
    ('{"type": "session.config", "model": "gpt-9"}', "model_not_found", "solo, duo"),
    ('{"type": "session.config", "response_format": "mp3"}', INVALID, "'pcm'"),
    ('{"type": "session.config", "split_granularity": "letter"}', INVALID, "'sentence'"),
]


async def test_bad_messages_are_answered_and_forgotten(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure()
        for message, code, says in BAD_MESSAGES:
            await c.socket.send(message)
            error = await c.error()
            assert (error["code"], error["type"]) == (code, "invalid_request_error"), message
            assert says in error["message"], message
        await c.speak("still here")


@pytest.mark.parametrize(
    "message",
    [{"type": "input.text", "text": "hi"}, {"type": "input.done"}],
)
async def test_text_before_the_configuration(server: Server, message: dict[str, Any]) -> None:
    async with client(server.socket_url) as c:
        await c.socket.send(json.dumps({**message, "context_id": "x"}))
        event = await c.event()
        assert event["error"]["code"] == VIOLATION
        assert event["context_id"] == "x"
        assert "session.config" in event["error"]["message"]
        await c.configure()
        await c.speak("fine")


@pytest.mark.parametrize("granularity", ["none", "sentence", "clause", "word"])
@pytest.mark.parametrize("blank", [" ", "\n", " \n ", "\u3000"])
async def test_blank_text_is_a_text_without_words(
    server: Server, granularity: str, blank: str
) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity=granularity)
        await c.speak(blank)
        await c.socket.send(json.dumps({"type": "input.done"}))
        assert (await c.error())["code"] == VIOLATION, "nothing was sent since"
        await c.speak(f"Hi.{blank}")


async def test_text_that_cannot_be_spoken(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("\u4f60\u597d")
        event = await c.event()
        assert event["error"]["message"] == "nothing in it can be spoken"
        assert event["utterance_id"].startswith("utt_")
        await c.until("input.spoken")


@pytest.mark.parametrize("granularity", ["none", "sentence"])
async def test_text_over_the_limit_is_dropped_by_the_message(
    server: Server, granularity: str
) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity=granularity)
        await c.send("input.text", text="kept")
        await c.send("input.text", text="x" * 197)
        error = await c.error()
        assert (error["code"], error["param"]) == (INVALID, "text")
        assert "at most 200" in error["message"]
        await c.send("input.done")
        await c.until("audio.done")
    assert [r.text for r in server.solo.counts.requests] == ["kept"]


async def test_a_rejected_configuration_keeps_the_previous_one(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(voice="ben")
        await c.send("session.config", voice="bob")
        assert (await c.error())["param"] == "voice"
        await c.speak("hello")
    assert server.solo.counts.requests[0].voice == "ben"


async def test_overload_is_reported_and_passes(server: Server) -> None:
    server.solo.behaviour.capacity = 0
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello")
        refusal = await c.until("error")
        error = refusal["error"]
        assert (error["code"], error["type"]) == ("rate_limit_exceeded", "rate_limit_error")
        assert refusal["retry_after_s"] == 3  # 2.5 s, and never too soon
        await c.until("input.spoken")
        server.solo.behaviour.capacity = 1
        await c.speak("now")


async def closed(c: Client) -> int | None:
    await asyncio.wait_for(c.socket.wait_closed(), 30)
    return c.socket.close_code


class TestTimeouts:
    """Made short."""

    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(socket_config_timeout_s=2.0, socket_idle_timeout_s=2.0)

    async def test_no_configuration_in_time(self, server: Server) -> None:
        async with client(server.socket_url) as c:
            await c.send("session.config", voice="bob")
            assert (await c.error())["code"] == "voice_not_found"
            assert (await c.error())["code"] == "config_timeout"
            assert await closed(c) == 1008

    async def test_idle(self, server: Server) -> None:
        async with client(server.socket_url) as c:
            await c.configure()
            await c.send("input.text", text="never committed")
            assert (await c.error())["code"] == "idle_timeout"
            assert await closed(c) == 1000

    async def test_not_idle_while_spoken_or_heard(self, server: Server) -> None:
        how = server.solo.behaviour
        how.chunks, how.interval_s = 10, 0.3
        async with client(server.socket_url) as c:
            await c.configure()
            await c.speak("longer than the idle timeout in the making")
            how.interval_s, how.chunk_samples = 0, 24_000
            await c.speak("made at once and ten seconds long")
            await asyncio.sleep(2.5)  # longer than the timeout, much shorter than the sound
            await c.speak("so this is in time")


class TestLimits:
    """Made small."""

    @pytest.fixture
    def settings(self) -> ServerSettings:
        return ServerSettings(max_pending_utterances=3, max_message_bytes=4096)

    async def test_too_many_sentences_wait(self, server: Server) -> None:
        server.solo.behaviour.may_sound = asyncio.Event()
        async with client(server.socket_url) as c:
            await c.configure(split_granularity="sentence")
            await c.send("input.text", text="One. ")
            await eventually(lambda: server.solo.counts.open == 1)
            await c.send("input.text", text="Two. Three. Four. ")
            await c.send("input.text", text="Five. ")
            await c.until("audio.start")
            assert (await c.error())["code"] == "rate_limit_exceeded"
            server.solo.behaviour.may_sound.set()
            for _ in range(4):
                await c.until("audio.done")
            await c.send("input.text", text="Six. ")
            await c.until("audio.done")
        texts = ["One.", "Two.", "Three.", "Four.", "Six."]
        assert [r.text for r in server.solo.counts.requests] == texts

    async def test_a_huge_message_ends_the_connection(self, server: Server) -> None:
        async with client(server.socket_url) as c:
            await c.configure()
            await c.send("input.text", text="x" * 5000)
            assert await closed(c) == 1009

    async def test_unread_answers_are_bounded(self, server: Server) -> None:
        server.solo.behaviour.chunks = 4000
        async with client(server.socket_url, max_queue=1) as c:
            await c.configure()
            await c.submit("hello")
            await eventually(lambda: server.solo.counts.chunks > 100)
            await until_still(lambda: server.solo.counts.chunks)
            for _ in range(500):
                await c.socket.send("{")
            await eventually(lambda: server.solo.counts.open == 0)
            c.socket.transport.abort()
