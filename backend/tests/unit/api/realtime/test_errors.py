"""What clients do wrong: a typed error each, an open session, and no harm to another one."""

from __future__ import annotations

import asyncio
import base64
import json
from typing import Any

import pytest
from endpoints import Endpoints
from hypothesis import given, settings
from hypothesis import strategies as st
from live_server import Server
from websockets.exceptions import ConnectionClosed

from cantata.api.realtime.client_events import CLIENT_TYPES
from cantata.speech_input.settings import RealtimeSettings
from talking import Talker, speech, talker

INVALID = "invalid_request_error"


@pytest.fixture
def limits() -> RealtimeSettings:
    return RealtimeSettings(
        max_sound_s=8.0, max_append_bytes=600_000, max_message_bytes=1 << 20, max_items=4
    )


async def assert_works(c: Talker) -> None:
    """A whole turn on the same connection."""
    await c.write("Hello.")
    await c.send("response.create", response={"output_modalities": ["text"]})
    done = await c.until("response.done")
    assert done["response"]["status"] == "completed"


def item(**fields: Any) -> dict[str, Any]:
    return {"type": "message", "role": "user", **fields}


TEXT = [{"type": "input_text", "text": "Hi."}]
ITEM_CREATE, TRUNCATE = "conversation.item.create", "conversation.item.truncate"
CONVERSATION, MODALITIES = "response.conversation", "response.output_modalities"
WRONG: list[tuple[str | dict[str, Any], str, str | None]] = [
    ("{", "protocol_violation", None),
    ("[]", "protocol_violation", None),
    ("7", "protocol_violation", None),
    ('{"type": 7}', "protocol_violation", "type"),
    ({}, "protocol_violation", "type"),
    ({"type": "session.destroy"}, "protocol_violation", "type"),
    ({"type": "session.update"}, "invalid_value", "session"),
    ({"type": "input_audio_buffer.append"}, "invalid_value", "audio"),
    ({"type": "input_audio_buffer.append", "audio": "%%%"}, "invalid_value", "audio"),
    ({"type": "input_audio_buffer.append", "audio": "AAAAA"}, "invalid_value", "audio"),
    ({"type": "input_audio_buffer.append", "audio": "ä"}, "invalid_value", "audio"),
    ({"type": "input_audio_buffer.append", "audio": "A" * 900_000}, "body_too_large", "audio"),
    ({"type": "input_audio_buffer.commit"}, "input_audio_buffer_commit_empty", None),
    ({"type": "response.cancel"}, "response_cancel_not_active", "response_id"),
    ({"type": "response.create", "response": {"conversation": "x"}}, "invalid_value", CONVERSATION),
    (
        {"type": "response.create", "response": {"output_modalities": 3}},
        "invalid_value",
        MODALITIES,
    ),
    (
        {"type": "response.create", "response": {"input": [{"type": "item_reference", "id": "x"}]}},
        "item_not_found",
        "item_id",
    ),
    ({"type": ITEM_CREATE, "item": {"type": "mcp_call"}}, "invalid_value", "item"),
    ({"type": ITEM_CREATE, "item": {"type": "function_call"}}, "invalid_value", "item.call_id"),
    ({"type": ITEM_CREATE, "item": {"type": "message"}}, "invalid_value", "item.role"),
    ({"type": ITEM_CREATE, "item": item()}, "invalid_value", "item.content"),
    (
        {"type": ITEM_CREATE, "item": item(content=[{"type": "input_image"}])},
        "invalid_value",
        "item",
    ),
    (
        {"type": ITEM_CREATE, "item": item(content=[{"type": "input_audio"}])},
        "invalid_value",
        "item.content",
    ),
    (
        {"type": ITEM_CREATE, "item": item(content=[{"type": "input_audio", "audio": "%"}])},
        "invalid_value",
        "item.content",
    ),
    (
        {"type": ITEM_CREATE, "item": item(content=[{"type": "output_text", "text": "x"}])},
        "invalid_value",
        "item.content",
    ),
    (
        {
            "type": ITEM_CREATE,
            "item": item(content=[{"type": "input_text", "text": "x" * 70_000}]),
        },
        "body_too_large",
        "item.content",
    ),
    (
        {"type": ITEM_CREATE, "item": item(content=TEXT), "previous_item_id": "none"},
        "item_not_found",
        "previous_item_id",
    ),
    ({"type": "conversation.item.retrieve", "item_id": "none"}, "item_not_found", "item_id"),
    ({"type": "conversation.item.delete", "item_id": "none"}, "item_not_found", "item_id"),
    ({"type": "conversation.item.delete"}, "invalid_value", "item_id"),
    (
        {"type": TRUNCATE, "item_id": "none", "content_index": 0, "audio_end_ms": 0},
        "item_not_found",
        "item_id",
    ),
    (
        {"type": TRUNCATE, "item_id": "none", "content_index": 0, "audio_end_ms": -1},
        "invalid_value",
        "audio_end_ms",
    ),
]


async def test_every_mistake_is_named_and_ends_nothing(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as other, talker(server.url) as c:
        for sent, code, param in WRONG:
            message = {**sent, "event_id": "mine"} if isinstance(sent, dict) else sent
            await c.socket.send(message if isinstance(message, str) else json.dumps(message))
            error = await c.error()
            shown = str(sent)[:100]
            assert (error["type"], error["code"], error["param"]) == (INVALID, code, param), shown
            assert error["event_id"] == ("mine" if isinstance(sent, dict) else None), shown
            assert error["message"], shown
        await c.socket.send(b"\x00\x01")
        assert (await c.error())["code"] == "protocol_violation"
        await assert_works(c)
        await assert_works(other)
        assert [event for event in other.events if event["type"] == "error"] == []


def events() -> st.SearchStrategy[dict[str, Any]]:
    """Events of a known type, with fields that other events have, and with any values."""
    values = st.recursive(
        st.none() | st.booleans() | st.integers() | st.floats() | st.text(max_size=8),
        lambda inner: (
            st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from(NAMES), inner, max_size=3)
        ),
        max_leaves=6,
    )
    return st.builds(
        lambda kind, fields: {**fields, "type": kind},
        st.sampled_from(CLIENT_TYPES),
        st.dictionaries(st.sampled_from(NAMES), values, max_size=4),
    )


NAMES = (
    *("session", "audio", "item", "item_id", "previous_item_id", "response", "response_id"),
    *("content_index", "audio_end_ms", "type", "role", "content", "input", "output", "format"),
    *("turn_detection", "voice", "speed", "tools", "modalities", "input_audio_format", "metadata"),
    *("conversation", "instructions", "output_modalities", "transcription", "event_id"),
)


async def test_any_event_is_answered_or_taken(server: Server, others: Endpoints) -> None:
    """Nothing ends the session: after each event it answers as before."""

    async def send(c: Talker, event: dict[str, Any]) -> None:
        await c.socket.send(json.dumps(event))
        await c.send("conversation.item.retrieve", item_id="none", event_id="still there?")
        while (await c.error())["event_id"] != "still there?":
            pass
        c.events.clear()

    def run(event: dict[str, Any]) -> None:
        # In a thread of Hypothesis' own; the connection lives in the test's loop.
        asyncio.run_coroutine_threadsafe(send(c, event), loop).result(30)

    loop = asyncio.get_running_loop()
    several = settings(max_examples=150, deadline=None, derandomize=True, database=None)
    async with talker(server.url) as c:
        await asyncio.to_thread(several(given(events())(run)))


async def test_a_second_answer_is_refused_while_one_is_made(
    server: Server, others: Endpoints
) -> None:
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 5_000, 0.002
    async with talker(server.url) as c:
        await c.write("Hello.")
        await c.send("response.create")
        await c.until("response.output_audio.delta")
        await c.send("response.create")
        assert (await c.error())["code"] == "conversation_already_has_active_response"
        await c.send("response.cancel", response_id="resp_another")
        assert (await c.error())["code"] == "response_cancel_not_active"
        await c.send("response.cancel")
        await c.until("response.done")


async def test_sound_that_is_never_committed_is_bounded(server: Server) -> None:
    async with talker(server.url) as c:
        await c.update(audio={"input": {"turn_detection": None}})
        second = base64.b64encode(bytes(48_000)).decode()
        for _ in range(8):
            await c.send("input_audio_buffer.append", audio=second)
        await c.send("input_audio_buffer.append", audio=second, event_id="ninth")
        error = await c.error()
        assert (error["code"], error["event_id"]) == ("input_audio_buffer_full", "ninth")
        assert "at most 8 s" in error["message"]
        await c.send("input_audio_buffer.commit")
        await c.until("conversation.item.done")
        await c.send("input_audio_buffer.append", audio=second)
        await c.send("input_audio_buffer.clear")
        await c.until("input_audio_buffer.cleared")


async def test_speech_without_end_is_cut_into_turns(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        await c.update(output_modalities=["text"])
        await c.say(speech(0.5, 0.0) * 4)
        first = await c.until("input_audio_buffer.speech_stopped")
        assert first["audio_end_ms"] < 9500
        await c.until("input_audio_buffer.speech_started")


async def test_the_oldest_item_goes_when_there_are_too_many(
    server: Server, others: Endpoints
) -> None:
    async with talker(server.url) as c:
        for number in range(6):
            await c.write(f"Number {number}.")
        await c.send("response.create", response={"output_modalities": ["text"]})
        await c.until("response.done")
        said = [message["content"] for message in others.asked[0]["messages"]]
        assert said == ["Number 2.", "Number 3.", "Number 4.", "Number 5."]
        deleted = [e["item_id"] for e in c.events if e["type"] == "conversation.item.deleted"]
        assert len(deleted) == 3, "the answer is an item too"


async def test_items_are_put_where_they_belong(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        for name, after in (("b", None), ("a", "root"), ("c", "b")):
            content = [{"type": "input_text", "text": name}]
            place = {} if after is None else {"previous_item_id": after}
            await c.send(ITEM_CREATE, item=item(id=name, content=content), **place)
            await c.until("conversation.item.done")
        befores = [
            e["previous_item_id"] for e in c.events if e["type"] == "conversation.item.added"
        ]
        assert befores == [None, None, "b"]
        await c.send(ITEM_CREATE, item=item(id="b", content=TEXT))
        assert (await c.error())["code"] == "item_create_duplicate_item_id"
        await c.send("conversation.item.delete", item_id="b")
        await c.until("conversation.item.deleted")
        await c.send("response.create", response={"output_modalities": ["text"]})
        await c.until("response.done")
        assert [m["content"] for m in others.asked[0]["messages"]] == ["a", "c"]


@pytest.mark.parametrize("fault", ["refused", "broken"])
async def test_a_chat_that_fails_fails_the_answer_alone(
    server: Server, others: Endpoints, fault: str
) -> None:
    others.status = 404 if fault == "refused" else 200
    others.broken = fault == "broken"
    async with talker(server.url) as c:
        await c.write("Hello.")
        await c.send("response.create", response={"output_modalities": ["text"]})
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == "chat_failed"
        others.status, others.broken = 200, False
        await assert_works(c)


async def test_speech_that_fails_fails_the_answer_alone(server: Server, others: Endpoints) -> None:
    server.solo.behaviour.capacity = 0
    async with talker(server.url) as c:
        await c.write("Hello.")
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "failed"
        assert response["status_details"]["error"]["code"] == "rate_limit_exceeded"
        server.solo.behaviour.capacity = 10
        await c.send("response.create")
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "completed"


async def test_a_message_beyond_all_limits_ends_the_connection(server: Server) -> None:
    async with talker(server.url) as c:
        await c.socket.send("x" * (1 << 20) + "y")
        with pytest.raises(ConnectionClosed) as closed:
            await c.event()
        assert closed.value.rcvd is not None
        assert closed.value.rcvd.code == 1009


async def test_sound_that_waits_to_be_understood_is_bounded(
    server: Server, others: Endpoints
) -> None:
    sound = base64.b64encode(speech(0.0, 0.0) * 2).decode()
    async with talker(server.url) as c:
        for _ in range(3):
            content = [{"type": "input_audio", "audio": sound}]
            await c.send(ITEM_CREATE, item=item(content=content))
        error = await c.error()
        assert (error["type"], error["code"]) == ("rate_limit_error", "rate_limit_exceeded")
        await c.send("response.create", response={"output_modalities": ["text"]})
        done = await c.until("response.done")
        assert done["response"]["status"] == "completed"
        assert others.asked[0]["messages"], "what was taken is understood"


async def test_an_answer_without_end_is_cut(server: Server, others: Endpoints) -> None:
    others.deltas = ["word " * 1000] * 100
    async with talker(server.url) as c:
        await c.send("response.create", response={"output_modalities": ["text"]})
        response = (await c.until("response.done"))["response"]
        assert response["status"] == "incomplete"
        assert len(response["output"][0]["content"][0]["text"]) == 16_384
