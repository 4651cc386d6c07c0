"""Callers of every transport: they request a text, receive its first sound, and leave.

Their sockets buffer little, so that the server soon notices a client that does not read.
"""

from __future__ import annotations

import asyncio
import json
import socket
from abc import ABC, abstractmethod
from collections.abc import Awaitable, Callable, Mapping
from functools import partial
from typing import Any

from websockets.asyncio.client import ClientConnection, connect

from tiny_talker.serving import TinyServer

_BUFFER_BYTES = 4096


class Caller(ABC):
    """One connection that has requested a text."""

    @abstractmethod
    async def heard(self) -> None:
        """Wait for the first sound, or for the first byte if a file is sent whole."""

    @abstractmethod
    async def leave(self) -> None:
        """Cut the connection, or announce the end first."""


Call = Callable[[TinyServer, str], Awaitable[Caller]]


async def _connected(port: int) -> socket.socket:
    plug = socket.socket()
    plug.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, _BUFFER_BYTES)
    plug.setblocking(False)
    await asyncio.get_running_loop().sock_connect(plug, ("127.0.0.1", port))
    return plug


class StreamCaller(Caller):
    """Over TCP: HTTP and Wyoming."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.reader = reader
        self.writer = writer

    async def heard(self) -> None:
        assert await self.reader.readline()
        assert await self.reader.read(1)

    async def leave(self) -> None:
        self.writer.transport.abort()


async def tcp(port: int, sent: bytes) -> StreamCaller:
    """Connect and send."""
    reader, writer = await asyncio.open_connection(sock=await _connected(port), limit=_BUFFER_BYTES)
    writer.write(sent)
    return StreamCaller(reader, writer)


class HttpCaller(StreamCaller):
    async def heard(self) -> None:
        head = await self.reader.readuntil(b"\r\n\r\n")
        assert b" 200 " in head.splitlines()[0], head
        assert b"ndjson" in head or await self.reader.read(1)


async def http(
    server: TinyServer, text: str, /, *, path: str = "/v1/audio/speech", **fields: Any
) -> Caller:
    """POST; `{text}` in a field becomes the text."""
    body = json.dumps(fields or {"input": "{text}"}).replace("{text}", text).encode()
    head = (
        f"POST {path} HTTP/1.1\r\nhost: 127.0.0.1\r\ncontent-type: application/json\r\n"
        f"content-length: {len(body)}\r\n\r\n"
    )
    caller = await tcp(server.port, head.encode() + body)
    return HttpCaller(caller.reader, caller.writer)


async def wyoming(server: TinyServer, text: str) -> Caller:
    """Home Assistant's protocol."""
    event = json.dumps({"type": "synthesize", "data": {"text": text}}) + "\n"
    return await tcp(server.wyoming_port, event.encode())


class SocketCaller(Caller):
    """Over a WebSocket.

    Args:
        farewell: sent before leaving, and text that its answer contains.
    """

    def __init__(self, connection: ClientConnection, farewell: tuple[str, str] | None) -> None:
        self.connection = connection
        self._farewell = farewell

    async def heard(self) -> None:
        while isinstance(message := await self.connection.recv(), str):
            assert '"error"' not in message, message
            if json.loads(message).get("audio"):
                return

    async def leave(self) -> None:
        if self._farewell is not None:
            said, answer = self._farewell
            await self.connection.send(said)
            while answer not in str(await self.connection.recv()):
                pass
        self.connection.transport.abort()
        await self.connection.wait_closed()


async def web_socket(
    server: TinyServer,
    text: str,
    path: str,
    messages: list[dict[str, Any]],
    farewell: tuple[str, str] | None = None,
) -> Caller:
    """`{text}` in a message becomes the text."""
    plug = await _connected(server.port)
    connection = await connect(server.socket_url + path, sock=plug, max_queue=1)
    for message in messages:
        await connection.send(json.dumps(message).replace("{text}", text))
    return SocketCaller(connection, farewell)


_NATIVE = [
    {"type": "session.config"},
    {"type": "input.text", "text": "{text}"},
    {"type": "input.done"},
]
_DEEPGRAM = [{"type": "Speak", "text": "{text}"}, {"type": "Flush"}]
_ELEVENLABS = "/v1/text-to-speech/tiny"

TRANSPORTS: Mapping[str, Call] = {
    "http mp3": http,
    "http pcm": partial(http, input="{text}", response_format="pcm"),
    "http events": partial(http, input="{text}", stream_format="sse"),
    "batch": partial(
        http, path="/v1/audio/speech/batch", requests=[{"custom_id": "a", "input": "{text}"}]
    ),
    "socket cancel": partial(
        web_socket,
        path="/v1/audio/speech/stream",
        messages=_NATIVE,
        farewell=('{"type": "input.cancel"}', '"cancelled":true'),
    ),
    "socket": partial(web_socket, path="/v1/audio/speech/stream", messages=_NATIVE),
    "deepgram http": partial(http, path="/v1/speak", text="{text}"),
    "deepgram clear": partial(
        web_socket,
        path="/v1/speak",
        messages=_DEEPGRAM,
        farewell=('{"type": "Clear"}', '"Cleared"'),
    ),
    "deepgram socket": partial(web_socket, path="/v1/speak", messages=_DEEPGRAM),
    "elevenlabs http": partial(http, path=_ELEVENLABS, text="{text}"),
    "elevenlabs socket": partial(
        web_socket,
        path=f"{_ELEVENLABS}/stream-input",
        messages=[{"text": " "}, {"text": "{text}", "flush": True}],
    ),
    "elevenlabs contexts": partial(
        web_socket,
        path=f"{_ELEVENLABS}/multi-stream-input",
        messages=[{"text": "{text}", "context_id": "a", "flush": True}],
    ),
    "wyoming": wyoming,
}
"""By name: a call over each transport."""
