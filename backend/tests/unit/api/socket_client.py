"""A bare WebSocket client: sends anything, including invalid messages."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

Event = dict[str, Any]


class Client:
    """One connection; binary messages are collected in `pcm`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.pcm = b""

    async def send(self, kind: str, **fields: Any) -> None:
        await self.socket.send(json.dumps({"type": kind, **fields}))

    async def event(self) -> Event:
        """The next text message."""
        async with asyncio.timeout(30):
            while isinstance(message := await self.socket.recv(), bytes):
                self.pcm += message
        event: Event = json.loads(message)
        return event

    async def until(self, kind: str) -> Event:
        """The next message of this type; an `error` on the way fails the test."""
        while (event := await self.event())["type"] != kind:
            assert event["type"] != "error", event
        return event

    async def error(self) -> Event:
        """The next message, which must be an error; its body."""
        event = await self.event()
        assert event["type"] == "error", event
        assert set(event["error"]) == {"message", "type", "param", "code"}
        return dict(event["error"])

    async def configure(self, **fields: Any) -> Event:
        await self.send("session.config", **fields)
        return await self.until("session.configured")

    async def submit(self, text: str, **fields: Any) -> None:
        """A complete text; its fields go with `input.done`."""
        await self.send("input.text", text=text)
        await self.send("input.done", **fields)

    async def speak(self, text: str) -> Event:
        """One utterance; its `audio.done`."""
        await self.submit(text)
        done = await self.until("audio.done")
        await self.until("input.spoken")
        return done


@asynccontextmanager
async def client(url: str, **options: Any) -> AsyncIterator[Client]:
    async with connect(url, **options) as socket:
        yield Client(socket)
