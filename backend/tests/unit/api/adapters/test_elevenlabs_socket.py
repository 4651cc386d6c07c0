"""ElevenLabs' WebSockets: one text, and several contexts."""

from __future__ import annotations

import asyncio
import base64
from collections.abc import Iterable
from typing import Any

import httpx
import pytest
from fake_service import eventually, expected_pcm
from json_socket import JsonSocket, Message, json_socket
from live_server import Server, until_still
from websockets.exceptions import InvalidStatus

from cantata.api.adapters.elevenlabs_socket import MAX_CONTEXTS
from cantata.audio.pcm import encode_s16le
from cantata.contract.data.errors import RequestFailed

SINGLE, MULTI = "stream-input", "multi-stream-input"


def address(server: Server, kind: str, voice: str = "clara", **query: Any) -> str:
    params = httpx.QueryParams({"output_format": "pcm_24000", **query})
    base = server.url.replace("http", "ws")
    return f"{base}/v1/text-to-speech/{voice}/{kind}?{params}"


def spoken(server: Server, *texts: str) -> bytes:
    return b"".join(encode_s16le(expected_pcm(text, server.solo.behaviour)) for text in texts)


def collect_sound(messages: Iterable[Message]) -> bytes:
    return b"".join(base64.b64decode(m["audio"]) for m in messages if m.get("audio"))


def join_characters(messages: Iterable[Message]) -> str:
    told = (m["alignment"]["chars"] for m in messages if m.get("alignment"))
    return "".join(character for characters in told for character in characters)


async def say(c: JsonSocket, context_id: str, text: str, *, flush: bool = True) -> None:
    await c.send(text=" ", context_id=context_id, voice_settings={"stability": 0.5})
    await c.send(text=f"{text} ", context_id=context_id)
    if flush:
        await c.send(context_id=context_id, flush=True)


async def test_one_text_as_it_is_written(server: Server) -> None:
    async with json_socket(address(server, SINGLE, seed=5)) as c:
        await c.send(text=" ", voice_settings={"speed": 0.9}, generation_config={})
        await c.send(text="First one. Sec", try_trigger_generation=True)
        await eventually(lambda: server.solo.counts.finished == 1)
        await c.send(text="ond ")
        await c.send(text=" ")
        await c.send(text="")
        messages = await c.until(isFinal=True)
        assert await c.closed() == 1000
    assert collect_sound(messages) == spoken(server, "First one.", "Second")
    assert join_characters(messages) == "First one. Second "
    assert messages[-1]["audio"] is None
    first, _ = server.solo.counts.requests
    assert (first.speed, first.seed) == (0.9, 5)


async def test_a_flush_speaks_and_leaves_the_text_open(server: Server) -> None:
    async with json_socket(address(server, SINGLE)) as c:
        await c.send(text="no end", flush=True)
        await c.until(audio=base64.b64encode(spoken(server, "no end")[-960:]).decode())
        await c.send(text="")
        await c.until(isFinal=True)


async def test_a_failure_of_one_text_ends_its_connection(server: Server) -> None:
    server.solo.behaviour.fail_after = 0
    server.solo.behaviour.error = RequestFailed("it broke")
    async with json_socket(address(server, SINGLE)) as c:
        await c.send(text="hello", flush=True)
        error = await c.message()
        assert (error["error"], error["message"]) == ("request_failed", "it broke")
        assert await c.closed() == 1011


async def test_compressed_sound_is_one_stream(server: Server) -> None:
    async with json_socket(address(server, SINGLE, output_format="mp3_44100_128")) as c:
        await c.send(text="One of them. Two of them. ", flush=True)
        await c.send(text="")
        messages = await c.until(isFinal=True)
    assert collect_sound(messages)[:1] == b"\xff"
    assert server.solo.counts.finished == 2


async def test_contexts_are_spoken_side_by_side(server: Server) -> None:
    may_sound = server.solo.behaviour.may_sound = asyncio.Event()
    async with json_socket(address(server, MULTI)) as c:
        await say(c, "a", "the first context")
        await say(c, "b", "another one")
        for context_id in "ab":
            await c.send(context_id=context_id, close_context=True)
        await eventually(lambda: server.solo.counts.open == 2)
        may_sound.set()
        messages: list[Message] = []
        while sum(message["isFinal"] is True for message in messages) < 2:
            messages.append(await c.message())
    by_context = {key: [m for m in messages if m["contextId"] == key] for key in "ab"}
    for key, text in (("a", "the first context"), ("b", "another one")):
        assert collect_sound(by_context[key]) == spoken(server, text)
        assert join_characters(by_context[key]) == f"{text} "
        assert by_context[key][-1]["isFinal"] is True
    assert server.solo.counts.max_open == 2


async def test_times_count_on_from_message_to_message(server: Server) -> None:
    """As Pipecat adds them up; and, with sync_alignment, as LiveKit takes them."""
    for query, adds_up in (({}, True), ({"sync_alignment": "true"}, False)):
        async with json_socket(address(server, MULTI, **query)) as c:
            await say(c, "a", "One two. Three four.")
            await c.send(context_id="a", close_context=True)
            told = [m["alignment"] for m in await c.until(isFinal=True) if m["alignment"]]
        clock_ms, starts = 0, []
        for alignment in told:
            starts += [clock_ms + at for at in alignment["charStartTimesMs"]]
            if adds_up:
                clock_ms = starts[-1] + alignment["charDurationsMs"][-1]
        text = "".join("".join(alignment["chars"]) for alignment in told)
        assert text == "One two. Three four. "
        # 20 ms for each character; the space between the sentences is not spoken.
        assert starts[text.index("two")] == pytest.approx(80, abs=2)
        assert starts[text.index("Three")] == pytest.approx(160, abs=2)
        assert starts[text.index("four")] == pytest.approx(280, abs=2)


async def test_closing_a_context_stops_what_was_not_flushed(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s = 1000, 0.01
    async with json_socket(address(server, MULTI)) as c:
        await say(c, "a", "A long story. And more of", flush=False)
        await eventually(lambda: server.solo.counts.chunks > 5)
        await c.send(context_id="a", close_context=True)
        await c.until(isFinal=True, contextId="a")
        assert server.solo.counts.chunks < 1000
        assert (server.solo.counts.aborted, server.solo.counts.open) == (1, 0)
        how.chunks = 3
        await say(c, "a", "again")
        await c.send(context_id="a", close_context=True)
        assert collect_sound(await c.until(isFinal=True)) == spoken(server, "again")
    assert [r.text for r in server.solo.counts.requests] == ["A long story.", "again"]


async def test_closing_a_flushed_context_twice_stops_it(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s = 1000, 0.01
    async with json_socket(address(server, MULTI)) as c:
        await say(c, "a", "A long story.")
        await c.send(context_id="a", close_context=True)
        await eventually(lambda: server.solo.counts.chunks > 5)
        await c.send(context_id="a", close_context=True)
        await c.until(isFinal=True, contextId="a")
    assert server.solo.counts.aborted == 1


async def test_closing_the_socket_finishes_what_was_flushed(server: Server) -> None:
    server.solo.behaviour.interval_s = 0.002
    async with json_socket(address(server, MULTI)) as c:
        await say(c, "a", "flushed and finished")
        await say(c, "b", "never said", flush=False)
        await c.send(close_socket=True)
        messages: list[Message] = []
        while sum(message["isFinal"] is True for message in messages) < 2:
            messages.append(await c.message())
        assert await c.closed() == 1000
    assert collect_sound(messages) == spoken(server, "flushed and finished")


async def test_a_disconnect_stops_every_context(server: Server) -> None:
    how = server.solo.behaviour
    how.chunks, how.interval_s = 1000, 0.01
    async with json_socket(address(server, MULTI)) as c:
        for key in "abc":
            await say(c, key, "A long story.")
        await eventually(lambda: server.solo.counts.open == 3)
        c.socket.transport.abort()
        await eventually(lambda: server.solo.counts.open == 0)
    assert server.solo.counts.aborted == 3


async def test_a_listener_that_reads_nothing_costs_bounded_sound(server: Server) -> None:
    server.solo.behaviour.chunks = 4000
    async with json_socket(address(server, MULTI), max_queue=1) as c:
        for key in "ab":
            await say(c, key, "A long story.")
        await until_still(lambda: server.solo.counts.chunks)
        assert server.solo.counts.chunks < 4000
        c.socket.transport.abort()
        await eventually(lambda: server.solo.counts.open == 0)


async def test_errors_name_their_context_and_leave_the_others(server: Server) -> None:
    async with json_socket(address(server, MULTI)) as c:
        server.solo.behaviour.capacity = 0
        await say(c, "a", "no room")
        error = await c.message()
        assert (error["error"], error["contextId"]) == ("rate_limit_exceeded", "a")
        server.solo.behaviour.capacity = 100
        await c.send(text="x" * 300, context_id="b")
        error = await c.message()
        assert (error["error"], error["contextId"]) == ("invalid_value", "b")
        await c.socket.send("[]")
        assert (await c.message())["error"] == "protocol_violation"
        await say(c, "c", "fine")
        await c.send(context_id="c", close_context=True)
        messages = await c.until(isFinal=True, contextId="c")
        assert collect_sound(messages) == spoken(server, "fine")


async def test_contexts_are_bounded_and_keep_alives_open_none(server: Server) -> None:
    async with json_socket(address(server, MULTI)) as c:
        await c.send(text="")
        await c.send(text="", context_id="unheard of")
        for number in range(MAX_CONTEXTS):
            await c.send(text=" ", context_id=str(number))
        await c.send(text=" ", context_id="one too many")
        error = await c.message()
        assert (error["error"], error["contextId"]) == ("rate_limit_exceeded", "one too many")
        await c.send(close_socket=True)
        await c.closed()


async def test_silence_closes_the_socket(server: Server) -> None:
    async with json_socket(address(server, MULTI, inactivity_timeout=1)) as c:
        error = (await c.until(error="idle_timeout"))[-1]
        assert "1 s" in error["message"]
        assert await c.closed() == 1008


@pytest.mark.parametrize(
    ("voice", "query", "status"),
    [
        ("nobody", {}, 400),
        ("clara", {"output_format": "mp3_1"}, 400),
        ("clara", {"inactivity_timeout": 999}, 400),
        ("clara", {"model_id": "gpt"}, 404),
    ],
)
async def test_wrong_options_are_an_http_error_before_the_socket(
    server: Server, voice: str, query: dict[str, Any], status: int
) -> None:
    with pytest.raises(InvalidStatus) as refused:
        async with json_socket(address(server, MULTI, voice, **query)):
            pass
    assert refused.value.response.status_code == status
    assert b'"detail"' in refused.value.response.body


async def test_a_text_is_finished_while_the_server_stops(server: Server) -> None:
    async with (
        json_socket(address(server, SINGLE)) as single,
        json_socket(address(server, MULTI)) as multi,
        json_socket(address(server, MULTI)) as idle,
    ):
        await single.send(text="The first half. ")
        await say(multi, "a", "Another one.", flush=False)
        await eventually(lambda: server.solo.counts.started == 2)
        server.app.state.context.drain.announce()
        assert (await idle.message())["error"] == "going_away"
        assert await idle.closed() == 1001
        await multi.send(text="Too late. ", context_id="b")
        refused = await multi.until(error="going_away")
        await single.send(text="The second half.")
        await single.send(text="")
        heard = await single.until(isFinal=True)
        assert collect_sound(heard) == spoken(server, "The first half.", "The second half.")
        await multi.send(context_id="a", flush=True)
        await multi.send(context_id="a", close_context=True)
        heard = refused + await multi.until(isFinal=True, contextId="a")
        assert collect_sound(heard) == spoken(server, "Another one.")
        assert await multi.closed() == 1001
