"""Clients of the Realtime API's beta get the events that they know."""

from __future__ import annotations

import base64
from typing import Any

import pytest
from endpoints import Endpoints
from fake_service import expected_pcm
from live_server import Server
from websockets.typing import Subprotocol

from cantata.audio.pcm import encode_s16le
from talking import Talker, talker

HEADER: dict[str, Any] = {"additional_headers": {"OpenAI-Beta": "realtime=v1"}}
SUBPROTOCOLS: dict[str, Any] = {
    "subprotocols": [Subprotocol("realtime"), Subprotocol("openai-beta.realtime-v1")]
}


async def write(c: Talker, text: str) -> None:
    content = [{"type": "input_text", "text": text}]
    item = {"type": "message", "role": "user", "content": content}
    await c.send("conversation.item.create", item=item)
    await c.until("conversation.item.created")


@pytest.mark.parametrize("how", [HEADER, SUBPROTOCOLS], ids=["header", "subprotocol"])
async def test_a_spoken_answer_in_the_betas_names(
    server: Server, others: Endpoints, how: dict[str, Any]
) -> None:
    async with talker(server.url, **how) as c:
        session = c.events[0]["session"]
        assert session["modalities"] == ["text", "audio"]
        assert session["voice"] == "clara"
        assert session["input_audio_format"] == session["output_audio_format"] == "pcm16"
        assert session["turn_detection"]["type"] == "server_vad"
        assert "audio" not in session
        await c.send("session.update", session={"voice": "ben", "modalities": ["text", "audio"]})
        assert (await c.until("session.updated"))["session"]["voice"] == "ben"
        c.events.clear()
        await write(c, "Hello?")
        await c.send("response.create")
        done = await c.until("response.done")
        assert c.types() == [
            "conversation.item.created",
            "response.created",
            "rate_limits.updated",
            "response.output_item.added",
            "conversation.item.created",
            "response.content_part.added",
            "response.audio_transcript.delta",
            "response.audio.delta",
            "response.audio.done",
            "response.audio_transcript.done",
            "response.content_part.done",
            "response.output_item.done",
            "response.done",
        ]
        deltas = [e["delta"] for e in c.events if e["type"] == "response.audio.delta"]
        expected = encode_s16le(expected_pcm("The answer.", server.solo.behaviour))
        assert b"".join(map(base64.b64decode, deltas)) == expected
        response = done["response"]
        assert response["modalities"] == ["text", "audio"]
        assert response["output"][0]["content"] == [{"type": "audio", "transcript": "The answer."}]


async def test_a_written_answer_in_the_betas_names(server: Server, others: Endpoints) -> None:
    async with talker(server.url, **HEADER) as c:
        await c.send("session.update", session={"modalities": ["text"]})
        assert (await c.until("session.updated"))["session"]["modalities"] == ["text"]
        await write(c, "Hello?")
        await c.send("response.create")
        done = await c.until("response.done")
        kinds = c.types()
        assert "response.text.delta" in kinds
        assert "response.text.done" in kinds
        assert done["response"]["output"][0]["content"] == [{"type": "text", "text": "The answer."}]


async def test_other_clients_get_todays_names(server: Server, others: Endpoints) -> None:
    async with talker(server.url, additional_headers={"OpenAI-Beta": "assistants=v2"}) as c:
        assert c.events[0]["session"]["output_modalities"] == ["audio"]
