"""A WebSocket client that sends JSON objects and sorts what comes back."""

from __future__ import annotations

import asyncio
import json
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

Message = dict[str, Any]


class JsonSocket:
    """One connection; binary messages are collected in `sound`."""

    def __init__(self, socket: ClientConnection) -> None:
        self.socket = socket
        self.sound = b""

    async def send(self, **fields: Any) -> None:
        await self.socket.send(json.dumps(fields))

    async def message(self) -> Message:
        """The next text message."""
        async with asyncio.timeout(30):
            while isinstance(received := await self.socket.recv(), bytes):
                self.sound += received
        message: Message = json.loads(received)
        return message

    async def until(self, **expected: Any) -> list[Message]:
        """Messages up to the first that has these values."""
        messages: list[Message] = []
        while not messages or any(messages[-1].get(k) != v for k, v in expected.items()):
            messages.append(await self.message())
        return messages

    async def closed(self) -> int | None:
        """The code with which the server closes."""
        async with asyncio.timeout(30):
            await self.socket.wait_closed()
        return self.socket.close_code


@asynccontextmanager
async def json_socket(url: str, **options: Any) -> AsyncIterator[JsonSocket]:
    async with connect(url, **options) as socket:
        yield JsonSocket(socket)
