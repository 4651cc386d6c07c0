"""WebSocket /v1/audio/speech/stream: speaking, cancelling, leaving."""

from __future__ import annotations

import asyncio
import re

import pytest
from fake_service import FakeService, eventually, expected_pcm
from live_server import Server, running, until_still
from socket_client import Client, Event, client

from cantata.api.settings import ServerSettings
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import Voice


def fetch_pcm(server: Server, text: str) -> bytes:
    return encode_s16le(expected_pcm(text, server.solo.behaviour))


async def test_a_whole_session(server: Server) -> None:
    async with client(server.socket_url) as c:
        configured = await c.configure(model="tts-1", voice="onyx", context_id="ctx")
        assert configured == {
            "type": "session.configured",
            "context_id": "ctx",
            "model": "solo",
            "voice": "ben",
            "sample_rate": 24000,
            "channels": 1,
            "format": "pcm_s16le",
        }
        await c.send("input.text", text="hello ")
        await c.send("input.text", text="there")
        await c.send("input.done", context_id="a")
        start = await c.event()
        assert start["type"] == "audio.start"
        assert (start["sample_rate"], start["channels"]) == (24000, 1)
        assert (start["format"], start["context_id"]) == ("pcm_s16le", "a")
        done = await c.until("audio.done")
        assert c.pcm == fetch_pcm(server, "hello there")
        assert done["utterance_id"] == start["utterance_id"]
        assert done["samples"] == 11 * 480
        assert done["duration_s"] == pytest.approx(0.22)
        assert done["ttfp_s"] >= 0
        assert done["rtf"] >= 0
        assert done["cancelled"] is False
        assert list(done["timeline"]) == ["text", "admit", "talker", "deliver"]
        assert sum(done["timeline"].values()) == pytest.approx(done["ttfp_s"])
        assert await c.event() == {"type": "input.spoken", "context_id": "a"}
        await c.send("session.close")
        assert (await c.event())["type"] == "session.done"
        await c.socket.wait_closed()
        assert c.socket.close_code == 1000
    assert [r.voice for r in server.solo.counts.requests] == ["ben"]


async def test_a_voice_finds_its_model_where_none_is_named(server: Server) -> None:
    duo = server.service.duo
    duo.voices = (*duo.voices, Voice("ella", "Ella"))
    async with client(server.socket_url) as c:
        configured = await c.configure(voice="ella")
        assert (configured["model"], configured["channels"]) == ("duo", 2)


async def test_the_socket_stays_open_and_can_be_reconfigured(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(speed=2, seed=3, temperature=0, instructions="softly")
        await c.speak("one")
        c.pcm = b""
        assert (await c.configure(voice={"id": "ben"}))["voice"] == "ben"
        await c.speak("two")
        assert c.pcm == fetch_pcm(server, "two")
        assert (await c.configure(model="duo"))["channels"] == 2
        c.pcm = b""
        await c.speak("three")
        assert c.pcm == encode_s16le(expected_pcm("three", server.service.duo.behaviour, 2))
    one, two = server.solo.counts.requests
    assert (one.speed, one.seed, one.temperature, one.instructions) == (2, 3, 0, "softly")
    assert (two.speed, two.seed, two.voice) == (1, None, "ben")


async def test_sentences_are_spoken_while_text_arrives(server: Server) -> None:
    server.solo.behaviour.interval_s = 0.002
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="sentence")
        await c.send("input.text", text="First one. Sec")
        await c.until("audio.done")
        assert [r.text for r in server.solo.counts.requests] == ["First one."]
        await c.send("input.text", text="ond one! Third")
        await c.until("audio.done")
        await c.send("input.done", context_id="end")
        await c.until("audio.done")
        assert await c.event() == {"type": "input.spoken", "context_id": "end"}
        texts = ["First one.", "Second one!", "Third"]
        assert [r.text for r in server.solo.counts.requests] == texts
        assert c.pcm == b"".join(fetch_pcm(server, text) for text in texts)


async def test_clauses_are_spoken_while_text_arrives(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="clause")
        await c.send("input.text", text="Well, when the kettle boils, we ")
        await c.until("audio.done")
        assert [r.text for r in server.solo.counts.requests] == ["Well, when the kettle boils,"]
        await c.send("input.text", text="shall have tea. And")
        await c.until("audio.done")
        await c.send("input.done")
        await c.until("input.spoken")
    said = [request.text for request in server.solo.counts.requests]
    assert said == ["Well, when the kettle boils,", "we shall have tea.", "And"]


async def words_of(c: Client, end: str) -> list[Event]:
    """The times of words that come before an event of this type."""
    words: list[Event] = []
    while (event := await c.event())["type"] != end:
        words += event.get("words", [])
    return words


async def test_an_opening_is_spoken_while_its_sentence_is_written(server: Server) -> None:
    """The rest comes only after its sound; word times count in the whole text."""
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="adaptive", timestamps=True)
        for piece in ("Well, when the ", "kettle boils", ", we"):
            await c.send("input.text", text=piece)
        words = await words_of(c, "audio.done")
        await c.send("input.text", text=" shall have some tea. And that is all")
        await c.send("input.done")
        words += await words_of(c, "input.spoken")
    said = ["Well, when the kettle boils,", "we shall have some tea.", "And that is all"]
    assert [request.text for request in server.solo.counts.requests] == said
    assert [request.continued for request in server.solo.counts.requests] == [False, False, True]
    whole = "Well, when the kettle boils, we shall have some tea. And that is all"
    places = [(word["text_start"], word["text_end"]) for word in words]
    assert [whole[start:end] for start, end in places] == re.findall(r"\w+", whole)


async def test_sentences_that_come_at_once_are_spoken_whole(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="adaptive")
        await c.send("input.text", text="Well, when the kettle boils, we shall have some tea. And")
        await c.send("input.done")
        await c.until("input.spoken")
    said = ["Well, when the kettle boils, we shall have some tea.", "And"]
    assert [request.text for request in server.solo.counts.requests] == said


async def test_a_cancel_forgets_an_opening(server: Server) -> None:
    """Text that comes behind it is another one."""
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="adaptive")
        await c.send("input.text", text="Well, when the kettle boils, we")
        await c.send("input.cancel")
        await c.until("input.cancelled")
        begun = len(server.solo.counts.requests)
        await c.send("input.text", text="Something else that was said, and")
        await c.until("audio.done")
        await c.send("input.done")
        await c.until("input.spoken")
    said = [request.text for request in server.solo.counts.requests[begun:]]
    assert said == ["Something else that was said,", "and"]


async def test_done_after_complete_sentences_is_no_violation(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="sentence")
        await c.send("input.text", text="All of it. ")
        await c.send("input.commit")
        await c.until("audio.done")
        await c.until("input.spoken")
        await c.send("input.done")
        assert (await c.error())["code"] == "protocol_violation"


async def test_cancel_is_answered_before_the_stages_have_let_go(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s, how.may_abort = 1000, 0.01, asyncio.Event()
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("a long story")
        await c.until("audio.start")
        await eventually(lambda: server.solo.counts.chunks > 5)
        await c.send("input.cancel")
        done = await c.until("audio.done")
        made = server.solo.counts.chunks
        assert server.solo.counts.aborted == 0
        assert done["cancelled"] is True
        assert done["samples"] == len(c.pcm) // 2 > 0
        # What follows waits for the abort, and contains nothing of the old utterance.
        how.may_abort.set()
        c.pcm, how.chunks = b"", 3
        await c.speak("next")
        assert c.pcm == fetch_pcm(server, "next")
        assert server.solo.counts.chunks == made + 3
    assert (server.solo.counts.aborted, server.solo.counts.abort_interrupted) == (1, 0)


async def test_cancel_before_the_first_sound(server: Server) -> None:
    server.solo.behaviour.first_after_s = 10
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello")
        await c.until("audio.start")
        await c.send("input.cancel")
        done = await c.until("audio.done")
        assert (done["cancelled"], done["samples"], done["ttfp_s"]) == (True, 0, None)
        server.solo.behaviour.first_after_s = 0
        assert (await c.speak("again"))["cancelled"] is False


async def test_cancel_drops_buffered_and_waiting_text(server: Server) -> None:
    server.solo.behaviour.interval_s = 0.02
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="sentence")
        await c.send("input.text", text="One is spoken. Two waits. Three waits. Four is buff")
        await c.until("audio.start")
        await c.send("input.cancel")
        assert (await c.until("audio.done"))["cancelled"] is True
        await c.submit("Five.")
        assert (await c.until("audio.done"))["cancelled"] is False
        await c.until("input.spoken")
    assert [r.text for r in server.solo.counts.requests] == ["One is spoken.", "Five."]


async def test_cancel_with_nothing_to_cancel_is_answered_and_harmless(server: Server) -> None:
    async with client(server.socket_url) as c:
        await c.send("input.cancel", context_id="early")
        assert await c.event() == {"type": "input.cancelled", "context_id": "early"}
        await c.configure()
        await c.send("input.text", text="kept only until here")
        await c.send("input.cancel")
        assert (await c.event())["type"] == "input.cancelled"
        await c.speak("hello")
        assert c.pcm == fetch_pcm(server, "hello")


@pytest.mark.parametrize("granularity", ["none", "sentence"])
async def test_cancel_right_behind_what_it_cancels_is_answered(
    server: Server, granularity: str
) -> None:
    """Whether or not the server has begun with the text."""
    server.solo.behaviour.interval_s = 0.01
    async with client(server.socket_url) as c:
        await c.configure(split_granularity=granularity)
        for number in range(20):
            await asyncio.gather(
                c.send("input.text", text="One is long enough. Two waits."),
                c.send("input.done"),
                c.send("input.cancel", context_id=str(number)),
            )
            told = []
            while (event := await c.event())["type"] != "input.cancelled":
                told.append((event["type"], event.get("cancelled")))
            assert event["context_id"] == str(number)
            assert told in (
                [("audio.done", True)],
                [("audio.start", None), ("audio.done", True)],
            )
        c.pcm = b""
        await c.configure()
        await c.speak("next")
        assert c.pcm == fetch_pcm(server, "next")


async def test_cancel_of_sound_that_waits_for_a_slow_socket(server: Server) -> None:
    server.solo.behaviour.chunks = 4000
    # A client that reads no more does not see the server's close.
    async with client(server.socket_url, max_queue=1, close_timeout=0.5) as c:
        await c.configure()
        await c.submit("hello")
        await until_still(lambda: server.solo.counts.chunks)
        made = server.solo.counts.chunks
        assert made < 4000
        await c.send("input.cancel")
        await eventually(lambda: server.solo.counts.aborted == 1)
        done = await c.until("audio.done")
        assert done["cancelled"] is True
        assert done["samples"] == len(c.pcm) // 2 < made * 480


async def test_a_slow_reader_holds_back_the_utterance(server: Server) -> None:
    server.solo.behaviour.chunks = 4000
    async with client(server.socket_url, max_queue=1) as c:
        await c.configure()
        await c.submit("hello")
        await until_still(lambda: server.solo.counts.chunks)
        assert server.solo.counts.chunks < 4000
        await c.until("audio.done")
        assert c.pcm == fetch_pcm(server, "hello")


@pytest.mark.parametrize("first_after_s", [0.0, 10.0])
async def test_disconnect_aborts_and_waits_for_it(server: Server, first_after_s: float) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s, how.abort_s, how.first_after_s = 1000, 0.01, 0.05, first_after_s
    async with client(server.socket_url) as c:
        await c.configure(split_granularity="sentence")
        await c.submit("One is spoken. Two waits.")
        await eventually(lambda: server.solo.counts.open == 1)
        # No closing handshake: the cable is cut.
        c.socket.transport.abort()
        await eventually(lambda: server.solo.counts.open == 0)
    counts = server.solo.counts
    assert (counts.started, counts.aborted, counts.abort_interrupted) == (1, 1, 0)


async def test_disconnect_right_after_a_cancel_lets_the_abort_end(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s, how.abort_s = 1000, 0.01, 0.1
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello")
        await c.until("audio.start")
        await c.send("input.cancel")
        await c.until("audio.done")
        c.socket.transport.abort()
        await eventually(lambda: server.solo.counts.open == 0)
    assert (server.solo.counts.aborted, server.solo.counts.abort_interrupted) == (1, 0)


async def test_close_finishes_what_was_committed(server: Server) -> None:
    server.solo.behaviour.interval_s = 0.01
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello")
        await c.send("input.text", text="dropped")
        await c.send("session.close")
        await c.send("input.text", text="too late")
        kinds = []
        while (event := await c.event())["type"] != "session.done":
            kinds.append(event["type"])
        await c.socket.wait_closed()
    assert sorted(kinds) == ["audio.done", "audio.start", "error", "input.spoken"]
    assert c.pcm == fetch_pcm(server, "hello")


async def test_a_failed_utterance_leaves_the_session_alive(server: Server) -> None:
    server.solo.behaviour.fail_after, server.solo.behaviour.error = 2, RequestFailed("broke")
    async with client(server.socket_url) as c:
        await c.configure()
        await c.submit("hello", context_id="x")
        start = await c.until("audio.start")
        failed = await c.event()
        assert failed["error"]["code"] == "request_failed"
        assert (failed["utterance_id"], failed["context_id"]) == (start["utterance_id"], "x")
        await c.until("input.spoken")
        server.solo.behaviour.fail_after = None
        c.pcm = b""
        await c.speak("again")
        assert c.pcm == fetch_pcm(server, "again")


async def test_an_unforeseen_fault_ends_this_session_alone(server: Server) -> None:
    async with client(server.socket_url) as other:
        await other.configure()
        async with client(server.socket_url) as c:
            await c.configure()
            server.solo.behaviour.fail_after = 1
            server.solo.behaviour.error = ZeroDivisionError("secret")
            await c.submit("hello")
            await c.until("audio.start")
            error = await c.error()
            assert error["code"] == "internal_error"
            assert "secret" not in error["message"]
            await c.socket.wait_closed()
            assert c.socket.close_code == 1011
        server.solo.behaviour.fail_after = None
        await other.speak("fine")
        assert other.pcm == fetch_pcm(server, "fine")


async def test_concurrent_sockets_do_not_mix(server: Server) -> None:
    server.solo.behaviour.interval_s = 0.002

    async def one(text: str) -> None:
        async with client(server.socket_url) as c:
            await c.configure()
            for _ in range(2):
                c.pcm = b""
                await c.speak(text)
                assert c.pcm == fetch_pcm(server, text)

    await asyncio.gather(*(one(f"speaker number {n}") for n in range(10)))
    assert server.solo.counts.finished == 20


async def test_shutdown_ends_open_sessions() -> None:
    service = FakeService()
    how = service.solo.behaviour
    how.chunks, how.interval_s = 100_000, 0.01
    async with (
        running(service, ServerSettings()) as server,
        client(server.socket_url) as c,
    ):
        await eventually(lambda: service.ready)
        await c.configure()
        await c.submit("hello")
        await c.until("audio.start")
    assert service.solo.counts.open == 0
    assert service.solo.counts.chunks < 50_000
    assert service.stops == 1
