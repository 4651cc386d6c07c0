"""Responses outside the conversation: written while another answer is being spoken."""

from __future__ import annotations

import asyncio
from typing import Any

from endpoints import Endpoints
from fake_service import eventually
from live_server import Server

from cantata.api.realtime.active_responses import MAX_OUT_OF_BAND
from talking import Event, Talker, assert_idle, talker

ASIDE: dict[str, Any] = {
    "conversation": "none",
    "output_modalities": ["text"],
    "instructions": "Is it about weather?",
}


async def speak_long(c: Talker, server: Server) -> str:
    """An answer that goes on; its id."""
    server.solo.behaviour.chunks, server.solo.behaviour.interval_s = 5_000, 0.002
    await c.write("Tell me about the sea.")
    await c.send("response.create")
    created = await c.until("response.created")
    await c.until("response.output_audio.delta")
    return str(created["response"]["id"])


async def begin_aside(c: Talker, **metadata: str) -> str:
    """One that is written beside it; its id."""
    await c.send("response.create", response={**ASIDE, "metadata": metadata})
    created = (await c.until("response.created"))["response"]
    assert (created["metadata"], created["conversation_id"]) == (metadata, None)
    return str(created["id"])


async def finish(c: Talker) -> Event:
    return dict((await c.until("response.done"))["response"])


async def test_it_is_written_while_an_answer_is_spoken(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        spoken = await speak_long(c, server)
        c.events.clear()
        beside = await begin_aside(c, topic="weather")
        done = await finish(c)
        assert (done["id"], done["status"]) == (beside, "completed")
        assert done["output"][0]["content"] == [{"type": "output_text", "text": "The answer."}]
        kinds = [e["type"] for e in c.events if e.get("response_id") == beside]
        assert "response.output_text.delta" in kinds
        assert "response.output_audio.delta" not in kinds
        await c.until("response.output_audio.delta")
        await c.send("response.create")
        error = await c.error()
        assert error["code"] == "conversation_already_has_active_response"
        assert spoken in error["message"]
        await c.send("response.cancel")
        assert (await finish(c))["id"] == spoken
        # The conversation knows nothing of it.
        await c.send("conversation.item.retrieve", item_id=done["output"][0]["id"])
        assert (await c.error())["code"] == "item_not_found"
    asked = [[m["content"] for m in one["messages"]] for one in others.asked]
    assert asked == [
        ["Tell me about the sea."],
        ["Is it about weather?", "Tell me about the sea.", *asked[1][2:]],
    ]
    await assert_idle(server.url)


async def test_a_cancel_is_of_the_one_that_it_names(server: Server, others: Endpoints) -> None:
    others.gate = asyncio.Event()
    async with talker(server.url) as c:
        await c.write("Hello.")
        first, second = [await begin_aside(c, number=str(number)) for number in range(2)]
        await eventually(lambda: others.open == 2)
        await c.send("response.cancel")
        assert (await c.error())["code"] == "response_cancel_not_active"
        await c.send("response.cancel", response_id=first)
        done = await finish(c)
        assert (done["id"], done["status"]) == (first, "cancelled")
        await eventually(lambda: others.open == 1)
        others.gate.set()
        done = await finish(c)
        assert (done["id"], done["status"]) == (second, "completed")


async def test_there_are_a_few_at_most_and_they_end_with_the_session(
    server: Server, others: Endpoints
) -> None:
    others.gate = asyncio.Event()
    async with talker(server.url) as c:
        await c.write("Hello.")
        for number in range(MAX_OUT_OF_BAND):
            await begin_aside(c, number=str(number))
        await c.send("response.create", response=ASIDE)
        error = await c.error()
        assert error["code"] == "conversation_already_has_active_response"
        assert "response_id" in error["message"]
        await eventually(lambda: others.open == MAX_OUT_OF_BAND)
    await eventually(lambda: others.open == 0)
    await assert_idle(server.url)


async def test_one_that_fails_fails_alone(server: Server, others: Endpoints) -> None:
    async with talker(server.url) as c:
        spoken = await speak_long(c, server)
        others.status = 500
        beside = await begin_aside(c)
        done = await finish(c)
        assert (done["id"], done["status"]) == (beside, "failed")
        assert done["status_details"]["error"]["code"] == "chat_failed"
        await c.until("response.output_audio.delta")
        await c.send("response.cancel", response_id=spoken)
        assert (await finish(c))["id"] == spoken
