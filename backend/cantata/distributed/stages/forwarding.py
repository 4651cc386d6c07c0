"""Chunks on the stream of an edge."""

from __future__ import annotations

from cantata.distributed.link.errors import ProtocolError
from cantata.distributed.link.frames import END
from cantata.distributed.link.stream import Stream
from cantata.distributed.stages.local_ends import Take
from cantata.distributed.stages.messages import StageFrameKind
from cantata.ipc.encoded import EncodedChunks
from cantata.ipc.wire import BrokenChannel


async def send_chunks(stream: Stream, encoded: EncodedChunks) -> None:
    """Send one message, once there is credit for it.

    Raises:
        LinkLost: it cannot arrive any more.
    """
    await stream.send(StageFrameKind.CHUNKS, *encoded.parts_for_link)


async def forward_chunks(stream: Stream, take: Take) -> None:
    """Pass on what arrives, until the other end has ended.

    Args:
        stream: of the edge.
        take: raises BrokenChannel for what are no chunks, which ends the link.

    Raises:
        LinkLost: nothing more arrives.
    """
    while (frame := await stream.receive()) is not None:
        if frame.kind == END:  # with a fault, which the streams of the stages tell, too
            return
        if frame.kind != StageFrameKind.CHUNKS:
            raise stream.reject(ProtocolError(f"a frame of kind {frame.kind} arrived on an edge"))
        try:
            await take(EncodedChunks.from_link(frame.body))
        except BrokenChannel as error:
            raise stream.reject(ProtocolError(str(error))) from error
