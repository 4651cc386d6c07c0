"""Messages of chunks in the form in which they travel on edges, between any two processes.

Stages encode and decode them. A relay reads only whose chunks they are, and passes the rest on as
it is.
"""

from __future__ import annotations

import math
import struct
import time
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

from cantata.contract.data.chunks import Chunk, Payload
from cantata.ipc.chunk_message import ChunkMessage
from cantata.ipc.serialization import decode, encode
from cantata.ipc.wire import BrokenChannel, Buffer

_SECONDS = struct.Struct("!d")
"""Begins a message: what its receiver needs for translating times to its own clock."""
Parts = tuple[bytes, Buffer]


@dataclass(frozen=True, slots=True)
class Head:
    """The fields of a `EncodedGroup` that a relay reads."""

    port: str
    request_ids: tuple[str, ...]
    finals: tuple[bool, ...]


@dataclass(frozen=True, slots=True)
class Heads:
    """Says whose chunks a message has."""

    groups: tuple[Head, ...]

    @property
    def request_ids(self) -> Iterator[str]:
        for group in self.groups:
            yield from group.request_ids

    @property
    def last(self) -> Iterator[tuple[str, str]]:
        """Request id and port of each chunk that is its request's last at its port."""
        for group in self.groups:
            for request_id, final in zip(group.request_ids, group.finals, strict=False):
                if final:
                    yield request_id, group.port


@dataclass(frozen=True, slots=True)
class EncodedChunks:
    """One message."""

    content: Buffer
    """A `ChunkMessage`, as `serialization.encode` encodes it."""
    behind_s: float = 0.0
    """By how much the clock of the machine that made the chunks is behind this one's."""

    @classmethod
    def of(cls, chunks: Sequence[Chunk[Payload]]) -> EncodedChunks:
        """Chunks with times of this machine. Raises TypeError: an array's numbers are not of its
        payload's kind."""
        return cls(b"".join(encode(ChunkMessage.of(chunks))))

    @property
    def parts(self) -> Parts:
        """The parts to send to another process on this machine."""
        return _SECONDS.pack(self.behind_s), self.content

    @classmethod
    def from_local(cls, message: Buffer) -> EncodedChunks:
        """What arrived as `parts`. Raises BrokenChannel: these are no chunks."""
        return cls(*_split(message))

    @property
    def parts_for_link(self) -> Parts:
        """As they are sent to another machine now: clocks differ between machines, and its own
        tells it the rest."""
        return _SECONDS.pack(time.monotonic() - self.behind_s), self.content

    @classmethod
    def from_link(cls, message: Buffer) -> EncodedChunks:
        """What arrived as `parts_for_link` just now. The time of the journey counts for the step
        after it. Raises BrokenChannel: these are no chunks."""
        content, sent_s = _split(message)
        return cls(content, time.monotonic() - sent_s)

    def heads(self) -> Heads:
        """Says whose chunks these are. Raises BrokenChannel: these are no chunks."""
        return decode(self.content, Heads)

    def chunks(self) -> list[Chunk[Payload]]:
        """The chunks, with times of this machine; their arrays lie in `content`. Raises
        BrokenChannel: these are no chunks."""
        return decode(self.content, ChunkMessage).chunks(self.behind_s)


def encode_chunks(chunks: Sequence[Chunk[Payload]]) -> tuple[Buffer, ...]:
    """Return the parts of a message for another process of this machine, as `EncodedChunks.of`
    would make, without copying an array.

    Raises:
        TypeError: an array's numbers are not of its payload's kind.
    """
    return _SECONDS.pack(0.0), *encode(ChunkMessage.of(chunks))


def _split(message: Buffer) -> tuple[memoryview, float]:
    if len(message) < _SECONDS.size:
        raise BrokenChannel(f"what arrived are no chunks, but {len(message)} bytes")
    [seconds] = _SECONDS.unpack_from(message)
    if not math.isfinite(seconds):
        raise BrokenChannel(f"what arrived are no chunks: a clock that shows {seconds}")
    return memoryview(message)[_SECONDS.size :], seconds
