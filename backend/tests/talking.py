"""A bare client of /v1/realtime, and sound for it."""

from __future__ import annotations

import asyncio
import base64
import json
from abc import ABC, abstractmethod
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from functools import cache
from itertools import groupby
from pathlib import Path
from typing import Any

import httpx
import numpy as np
import soundfile
import soxr
from websockets.asyncio.client import ClientConnection, connect

RECORDING = Path(__file__).parents[2] / "docs" / "voice" / "clara.mp3"
SAID = "the children walk home along the river after school"
"""In the recording."""
WIRE_RATE = 24_000

Event = dict[str, Any]

# The events of a turn, in order.
ANSWER = [
    "response.created",
    "rate_limits.updated",
    "response.output_item.added",
    "conversation.item.added",
    "response.content_part.added",
]
SPOKEN = [
    "response.output_audio_transcript.delta",
    "response.output_audio.delta",
    "response.output_audio.done",
    "response.output_audio_transcript.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]
WRITTEN = [
    "response.output_text.delta",
    "response.output_text.done",
    "response.content_part.done",
    "response.output_item.done",
    "conversation.item.done",
    "response.done",
]
HEARD = [
    "input_audio_buffer.speech_started",
    "input_audio_buffer.speech_stopped",
    "input_audio_buffer.committed",
    "conversation.item.added",
    "conversation.item.done",
]
TRANSCRIBED = [
    "conversation.item.input_audio_transcription.delta",
    "conversation.item.input_audio_transcription.completed",
]


@cache
def speech(lead_s: float = 0.5, tail_s: float = 1.0) -> bytes:
    """The recording between silences, as PCM of the wire."""
    sound, rate = soundfile.read(RECORDING, dtype="float32")
    wide = soxr.resample(sound, rate, WIRE_RATE)
    silences = [np.zeros(int(seconds * WIRE_RATE)) for seconds in (lead_s, tail_s)]
    whole = np.concatenate([silences[0], wide, silences[1]])
    return bytes((whole * 32767).astype("<i2").tobytes())


class EventLog(ABC):
    """A client of a session; `events` has everything that came."""

    def __init__(self) -> None:
        self.events: list[Event] = []

    @abstractmethod
    async def send(self, kind: str, **fields: Any) -> None:
        """Send an event."""

    @abstractmethod
    async def receive(self) -> Event:
        """The next event."""

    async def write(self, text: str) -> None:
        """Put a text of the user into the conversation."""
        content = [{"type": "input_text", "text": text}]
        item = {"type": "message", "role": "user", "content": content}
        await self.send("conversation.item.create", item=item)
        await self.until("conversation.item.done")

    async def update(self, **session: Any) -> Event:
        await self.send("session.update", session={"type": "realtime", **session})
        return dict((await self.until("session.updated"))["session"])

    async def event(self) -> Event:
        async with asyncio.timeout(30):
            event = await self.receive()
        self.events.append(event)
        return event

    async def until(self, kind: str) -> Event:
        """The next event of this type; an `error` on the way fails the test."""
        while (event := await self.event())["type"] != kind:
            assert event["type"] != "error", event
        return event

    async def error(self) -> Event:
        """The next error's body; other events may come first."""
        while (event := await self.event())["type"] != "error":
            pass
        assert set(event["error"]) == {"type", "code", "message", "param", "event_id"}
        return dict(event["error"])

    def types(self) -> list[str]:
        """Of all events; of several deltas of one type in a row, one."""
        return [kind for kind, _ in groupby(event["type"] for event in self.events)]


class Talker(EventLog):
    """One WebSocket."""

    def __init__(self, socket: ClientConnection) -> None:
        super().__init__()
        self.socket = socket

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def receive(self) -> Event:
        return dict(json.loads(await self.socket.recv()))

    async def say(self, sound: bytes, piece: int = 48_000) -> None:
        """Append sound, in pieces."""
        for start in range(0, len(sound), piece):
            data = base64.b64encode(sound[start : start + piece]).decode()
            await self.send("input_audio_buffer.append", audio=data)

    def sound(self) -> bytes:
        """Of all events."""
        deltas = [e["delta"] for e in self.events if e["type"] == "response.output_audio.delta"]
        return b"".join(map(base64.b64decode, deltas))


@asynccontextmanager
async def talker(url: str, query: str = "", **options: Any) -> AsyncIterator[Talker]:
    """A session that has been created."""
    address = url.replace("http", "ws", 1) + "/v1/realtime" + query
    # A client that reads no more does not see the server's close.
    async with connect(address, max_size=None, close_timeout=0.5, **options) as socket:
        one = Talker(socket)
        await one.until("session.created")
        yield one


def words_so_far(c: EventLog) -> str:
    """What the deltas of the user's words add up to."""
    return "".join(e["delta"] for e in c.events if e["type"] == TRANSCRIBED[0])


def part(c: EventLog, kind: str) -> dict[str, object]:
    """The one event of this type."""
    (event,) = (event for event in c.events if event["type"] == kind)
    return event


async def assert_idle(url: str) -> None:
    """Every count in /metrics is zero again."""

    def counts(text: str) -> dict[str, float]:
        names = ("cantata_realtime_responses ", "cantata_realtime_transcriptions ")
        lines = [
            line
            for line in text.splitlines()
            if line.startswith(names) or line.startswith("cantata_stage_held{")
        ]
        return {name: float(value) for name, value in (line.rsplit(" ", 1) for line in lines)}

    async with (
        httpx.AsyncClient(base_url=url, verify=False, timeout=60) as http,
        asyncio.timeout(60),
    ):
        while True:
            found = counts((await http.get("/metrics")).text)
            assert len(found) >= 2
            if not any(found.values()):
                return
            await asyncio.sleep(0.01)


def cancelled(c: EventLog, reason: str) -> None:
    response = c.events[-1]["response"]
    assert response["status"] == "cancelled"
    assert response["status_details"]["type"] == "cancelled"
    assert response["status_details"]["reason"] == reason
    assert response["output"][0]["status"] == "incomplete"
