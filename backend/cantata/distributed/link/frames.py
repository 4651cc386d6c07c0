"""Frames: what a link's byte stream consists of.

A frame is a header of nine bytes, in network order, and a body: the body's length (4 bytes), the
kind (1) and the stream (4). Stream 0 is the link's own. Streams are numbered from 1 by the end that
connected, which alone opens them.
"""

from __future__ import annotations

import struct
from dataclasses import dataclass

from cantata.distributed.link.errors import ProtocolError

HEADER = struct.Struct("!IBI")
LINK = 0
"""The stream for what concerns the link as a whole."""
MAX_STREAM = (1 << 32) - 1
MAX_BODY_BYTES = 256 << 20
"""The largest bodies carry the media of a conversation."""
MAX_HELLO_BYTES = 512
"""The same while the other end has not yet shown that it has the key."""

HELLO, PROOF, BEAT, CREDIT, END = range(1, 6)
"""Kinds of the link itself; END: the sender sends nothing more on this stream."""
FIRST_OF_USER = 16
"""Kinds from here on belong to what uses the link. Their bodies take credit."""


@dataclass(frozen=True, slots=True)
class Frame:
    kind: int
    stream: int
    body: bytearray
    """Its receiver's own."""


def pack_header(kind: int, stream: int, length: int) -> bytes:
    """The bytes before a body."""
    return HEADER.pack(length, kind, stream)


class FrameParser:
    """Cuts a byte stream into frames. `max_body_bytes`: bytes of the largest body that is
    accepted."""

    def __init__(self, max_body_bytes: int = MAX_BODY_BYTES) -> None:
        self._max_body_bytes = max_body_bytes
        self._held = bytearray()

    def feed(self, data: bytes | bytearray | memoryview) -> list[Frame]:
        """The frames that these bytes complete. Raises ProtocolError: a body is larger than
        allowed."""
        if self._held:
            self._held += data
            data = self._held
        frames: list[Frame] = []
        start = 0
        with memoryview(data) as view:
            while len(view) - start >= HEADER.size:
                length, kind, stream = HEADER.unpack_from(view, start)
                if length > self._max_body_bytes:
                    raise ProtocolError(
                        f"a body of {length} bytes arrived; at most {self._max_body_bytes} are "
                        "valid"
                    )
                end = start + HEADER.size + length
                if len(view) < end:
                    break
                frames.append(Frame(kind, stream, bytearray(view[start + HEADER.size : end])))
                start = end
            if start or data is not self._held:  # else a large body is still growing
                self._held = bytearray(view[start:])
        return frames
