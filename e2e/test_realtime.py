"""A spoken conversation with the real voice: what it says is heard, answered, and understood."""

from __future__ import annotations

import asyncio
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
import pytest
from websockets.asyncio.client import ClientConnection, connect

from cantata.speech_input.semantic_end import PATIENCE, weights
from cantata_bench.asr import word_error_rate

from .conftest import KNOWN
from .judges.speech import transcribe
from .judges.waveform import faults
from .server import Server, wait_until

pytestmark = [pytest.mark.e2e, pytest.mark.level1]


@pytest.fixture(scope="module")
def model() -> str:
    """The judge has learnt to hear its voices."""
    return KNOWN


RATE = 24_000
QUESTION = "The children walk home along the river after school."
LONG = "Tell me: " + "she went to the market to buy some bread and milk, " * 4
HESITATION = "So what I wanted to say was, um"
LOUD = 600
"""Level of a sample of speech, of 32,768."""
WORST_WER = 0.35
"""Highest word error rate of one short text."""
SILENCE_S = 1.0
"""Longer than what ends a turn."""
FREE_S = 20.0


@dataclass
class Conversation:
    """One session, and everything that it received."""

    socket: ClientConnection
    events: list[dict[str, Any]] = field(default_factory=list)

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def say(self, pcm: bytes) -> None:
        for start in range(0, len(pcm), RATE):
            data = base64.b64encode(pcm[start : start + RATE]).decode()
            await self.send("input_audio_buffer.append", audio=data)

    async def until(self, kind: str) -> dict[str, Any]:
        async with asyncio.timeout(60):
            while True:
                event: dict[str, Any] = json.loads(await self.socket.recv())
                assert event["type"] != "error", event
                self.events.append(event)
                if event["type"] == kind:
                    return event

    def sound(self) -> bytes:
        deltas = [e["delta"] for e in self.events if e["type"] == "response.output_audio.delta"]
        return b"".join(map(base64.b64decode, deltas))


def spoken(server: Server, text: str) -> bytes:
    """A question in another voice than the answer's, and the silence after it."""
    answer = server.speech(input=text, voice="ben", response_format="pcm", sample_rate=RATE)
    return bytes(RATE) + answer.content + bytes(2 * round(SILENCE_S * RATE))


def talk(server: Server, conversation: Callable[[Conversation], Any]) -> Any:
    async def run() -> Any:
        address = server.url.replace("http", "ws", 1) + "/v1/realtime?model=gpt-realtime"
        async with connect(address, max_size=None) as socket:
            one = Conversation(socket)
            await one.send(
                "session.update",
                session={"type": "realtime", "audio": {"input": {"transcription": {}}}},
            )
            await one.until("session.updated")
            return await conversation(one)

    return asyncio.run(run())


def test_a_spoken_question_is_heard_and_its_answer_understood(
    server: Server, figures: Callable[..., None]
) -> None:
    question = spoken(server, QUESTION)

    async def turn(c: Conversation) -> tuple[str, str, bytes]:
        await c.say(question)
        await c.until("response.done")
        heard = next(e["transcript"] for e in c.events if e["type"].endswith("n.completed"))
        said = next(e["transcript"] for e in c.events if e["type"].endswith("transcript.done"))
        return heard, said, c.sound()

    heard, said, sound = talk(server, turn)
    samples = np.frombuffer(sound, "<i2").astype(np.float32) / np.float32(32768)
    understood = transcribe(samples, RATE)
    heard_wer = word_error_rate([QUESTION], [heard])
    answer_wer = word_error_rate([said], [understood])
    figures(conversation=said, heard=f"{heard_wer:.2f}", answer=f"{answer_wer:.2f}")
    assert heard_wer <= WORST_WER, heard
    assert said.startswith("You said: ")
    assert answer_wer <= WORST_WER, understood
    assert faults(samples, RATE) == []
    wait_until(server.is_idle, FREE_S, "everything free again")


@pytest.mark.skipif(weights() is None, reason="smart-turn is not installed")
def test_with_semantic_vad_who_hesitates_is_waited_for(
    server: Server, figures: Callable[..., None]
) -> None:
    """Of two texts that the voice speaks: one is a sentence, the other only begins one."""
    detection = {"type": "semantic_vad", "eagerness": "high", "create_response": False}
    longest_s = PATIENCE["high"].longest_ms / 1000

    async def silence_s(c: Conversation, text: str) -> float:
        """Seconds of silence that ended the turn."""
        sound = spoken(server, text) + bytes(round(2 * RATE * longest_s))
        loud = np.flatnonzero(np.abs(np.frombuffer(sound, "<i2")) > LOUD)
        before_s = sum(len(one) for one in said) / 2 / RATE
        said.append(sound)
        await c.say(sound)
        stopped = await c.until("input_audio_buffer.speech_stopped")
        return float(stopped["audio_end_ms"] / 1000 - before_s - loud[-1] / RATE)

    async def turns(c: Conversation) -> list[float]:
        await c.send(
            "session.update",
            session={"type": "realtime", "audio": {"input": {"turn_detection": detection}}},
        )
        await c.until("session.updated")
        return [await silence_s(c, text) for text in (QUESTION, HESITATION)]

    said: list[bytes] = []
    finished_s, hesitating_s = talk(server, turns)
    figures(finished=f"{finished_s:.2f} s", hesitating=f"{hesitating_s:.2f} s")
    assert finished_s < 0.6
    assert abs(hesitating_s - longest_s) < 0.3
    wait_until(server.is_idle, FREE_S, "everything free again")


def test_a_connection_that_breaks_in_an_answer_costs_no_sample(
    server: Server, figures: Callable[..., None]
) -> None:
    """Once behind its first sound, once in its middle; the answer has no mark of it."""
    place = server.url.replace("http", "ws", 1) + "/v1/realtime"
    content = [{"type": "input_text", "text": LONG}]
    item = {"type": "message", "role": "user", "content": content}

    async def ask(c: Conversation) -> None:
        await c.send("conversation.item.create", item=item)
        await c.send("response.create")

    async def hear_whole() -> bytes:
        async with connect(place, max_size=None) as socket:
            c = Conversation(socket)
            await ask(c)
            await c.until("response.done")
            return c.sound()

    async def hear_in_parts() -> Conversation:
        query = "?resumable=true"
        c: Conversation | None = None
        for deltas in (1, 8, None):
            async with connect(place + query, max_size=None) as socket:
                c = Conversation(socket, [] if c is None else c.events)
                if deltas == 1:
                    token = (await c.until("session.created"))["resume"]["token"]
                    await ask(c)
                if deltas is None:
                    await c.until("response.done")
                    break
                for _ in range(deltas):
                    await c.until("response.output_audio.delta")
                query = f"?resume={token}&after={c.events[-1]['event_id']}"
                socket.transport.abort()
        assert c is not None
        return c

    async def hear_both() -> tuple[bytes, Conversation]:
        return await hear_whole(), await hear_in_parts()

    whole, c = asyncio.run(hear_both())
    kinds = [event["type"] for event in c.events]
    assert kinds.count("session.resumed") == 2
    assert c.events[-1]["response"]["status"] == "completed"
    assert c.sound() == whole
    samples = np.frombuffer(whole, "<i2").astype(np.float32) / np.float32(32768)
    assert faults(samples, RATE) == []
    figures(resumed=f"{len(samples) / RATE:.1f} s of sound over three connections")
    wait_until(server.is_idle, FREE_S, "everything free again")


def test_a_barge_in_frees_every_stage(server: Server) -> None:
    question, interruption = spoken(server, LONG), spoken(server, QUESTION)

    async def turns(c: Conversation) -> list[dict[str, Any]]:
        await c.say(question)
        await c.until("response.output_audio.delta")
        # All at once: the answer of many seconds has only begun.
        await c.say(interruption)
        await c.until("response.done")
        await c.until("response.done")
        return c.events

    events = talk(server, turns)
    kinds = [event["type"] for event in events]
    cancelled, completed = (e["response"] for e in events if e["type"] == "response.done")
    assert cancelled["status"] == "cancelled"
    assert cancelled["status_details"]["reason"] == "turn_detected"
    assert completed["status"] == "completed"
    second_start = [i for i, kind in enumerate(kinds) if kind.endswith("speech_started")][1]
    end = kinds.index("response.done")
    assert "response.output_audio.delta" not in kinds[second_start:end], "sound after the barge-in"
    wait_until(server.is_idle, FREE_S, "everything free again")
