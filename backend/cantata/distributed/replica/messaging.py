"""How work at a replica talks to its edge.

When the link is lost, the session cancels the work. An error from the link as well would be a
second reason to leave, which could interrupt what the first one frees; so after a lost link, the
work waits here until the cancellation comes.
"""

from __future__ import annotations

import asyncio
from typing import TypeVar

from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.stream import Stream
from cantata.distributed.messages import FrameKind
from cantata.distributed.serialization import decode, encode

T = TypeVar("T")


async def send(stream: Stream, kind: FrameKind, message: object) -> None:
    """Send a message, once the edge has taken enough of those before it."""
    try:
        await stream.send(kind, *encode(message))
    except LinkLost:
        await asyncio.Event().wait()


async def receive(stream: Stream, kind: FrameKind, message: type[T]) -> T | None:
    """The next message, which must be of this kind; None: the edge has left."""
    try:
        frame = await stream.receive()
        if frame is None:
            return None
        if frame.kind != kind:
            raise ProtocolError(f"a frame of kind {frame.kind} arrived instead of {kind.name}")
        return decode(frame.body, message)
    except LinkLost as error:
        if isinstance(error, ProtocolError):
            stream.reject(error)
        await asyncio.Event().wait()
        raise
