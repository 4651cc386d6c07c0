"""One end of a link: a connected socket, the streams on it, and whether the other end is there."""

from __future__ import annotations

import asyncio
import socket
import struct
import time
from collections.abc import Callable, Iterable

from cantata.distributed.link.errors import ConnectionClosed, LinkLost, ProtocolError
from cantata.distributed.link.frames import (
    BEAT,
    FIRST_OF_USER,
    LINK,
    MAX_STREAM,
    Frame,
    FrameParser,
    pack_header,
)
from cantata.distributed.link.heartbeat import TICK_S, Heartbeat, HeartbeatMonitor, check_loop
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.outbox import LinkOutbox
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.link.tls import LinkSocket
from cantata.ipc.wire import Buffer

MAX_STREAMS = 4096
"""Streams open at the same time on one link."""
ROOM_BYTES = 1 << 20
"""Streams wait while more than this waits for the kernel."""
_READ_BYTES = 256 << 10
_LATE = struct.Struct("!f")
"""Begins a heartbeat: for how many seconds its sender's loop has not run."""


class Link:
    """One end, from the moment at which both have shown that they have the key.

    Args:
        sock: connected, non-blocking; the link closes it.
        peer: names the other end, for people.
        on_stream: called with each stream that the other end opens.
        on_message: called with the kind and body of each frame that concerns no stream.
        on_state: called with what the other end reports with each heartbeat.
        on_lost: called when the link is over, before its streams get the error.
    """

    def __init__(
        self,
        sock: LinkSocket,
        side: LinkSide,
        heartbeat: Heartbeat,
        peer: str,
        *,
        on_stream: Callable[[LinkStream], None] | None = None,
        on_message: Callable[[int, bytearray], None] | None = None,
        on_state: Callable[[bytearray], None] | None = None,
        on_lost: Callable[[LinkLost], None] | None = None,
    ) -> None:
        self.peer = peer
        self._socket, self._side, self._heartbeat = sock, side, heartbeat
        self._on_stream, self._on_message, self._on_state = on_stream, on_message, on_state
        self._on_lost = on_lost
        self._loop = asyncio.get_running_loop()
        self._parser = FrameParser()
        self._outbox = LinkOutbox(sock)
        self._buffer = memoryview(bytearray(_READ_BYTES))
        self._streams: dict[int, LinkStream] = {}
        self._latest = 0
        """Number of the last stream that was opened."""
        self._state = b""
        self._monitor = HeartbeatMonitor(time.monotonic())
        self._ran_at = time.monotonic()
        """When the loop last ran, for the heart's thread."""
        self._flushing = False
        """`_flush` is about to run."""
        self._writing = False
        """The kernel has no room, and reports when it has."""
        self._is_full = False
        """There was no room for another frame: streams may be waiting for it."""
        self._emptied = asyncio.Event()
        """The kernel has taken all there was to send, or the link is lost."""
        self._lost: asyncio.Future[LinkLost] = self._loop.create_future()

    def begin(self) -> None:
        """Read, send heartbeats and watch from now on."""
        self._loop.add_reader(self._socket, self._wait_until_readable)
        self._ticking = self._loop.call_later(TICK_S, self._check_heartbeat)
        self._heartbeat.add(self)

    @property
    def is_lost(self) -> bool:
        return self._lost.done()

    async def wait_until_lost(self) -> LinkLost:
        """Why it is over, once it is."""
        return await asyncio.shield(self._lost)

    @property
    def streams(self) -> int:
        return len(self._streams)

    @property
    def has_room(self) -> bool:
        """Whether another frame may wait for the kernel."""
        return self._outbox.size < ROOM_BYTES

    def open(self) -> LinkStream:
        """A new stream, whose first frame opens it at the other end. Raises LinkLost: the link is
        over, or full of streams."""
        assert self._side is LinkSide.CONNECTED, "the end that connected opens streams"
        if self._lost.done():
            raise self._lost.result()
        if len(self._streams) >= MAX_STREAMS or self._latest == MAX_STREAM:
            raise LinkLost(f"{self.peer}: {len(self._streams)} streams are open")
        self._latest += 1
        return self._add(self._latest)

    def set_state(self, state: bytes, *, now: bool = False) -> None:
        """What every further heartbeat carries. `now`: send a heartbeat at once, too."""
        self._state = state
        if now and not self.is_lost:
            self._put_parts(self._build_heartbeat())

    def message(self, kind: int, *parts: Buffer) -> None:
        """Send what concerns no stream; without effect on a lost link."""
        if not self.is_lost:
            self.put(kind, LINK, parts)

    def put(self, kind: int, stream: int, parts: tuple[Buffer, ...] = ()) -> None:
        """Send a frame, together with all others of this turn of the loop: a system call, and a
        turn of the other end's loop, cost more than a chunk of sound.

        Raises:
            LinkLost: the link is over.
        """
        if self._lost.done():
            raise self._lost.result()
        length = sum(memoryview(part).nbytes for part in parts)
        self._put_parts((pack_header(kind, stream, length), *parts))

    def forget(self, stream: int) -> None:
        self._streams.pop(stream, None)

    async def finish(self, timeout_s: float) -> None:
        """Let the other end read everything that was sent, then close. `timeout_s`: how long the
        other end may need."""
        self._heartbeat.remove(self)
        try:
            async with asyncio.timeout(timeout_s):
                while self._outbox.size and not self.is_lost:
                    self._emptied.clear()
                    await self._emptied.wait()
                if not self.is_lost:
                    self._socket.shutdown(socket.SHUT_WR)
                    await self.wait_until_lost()  # the other end has read the end, and closes
        except (TimeoutError, OSError):
            pass  # its time is over
        self.close()

    def close(self, reason: str = "this end has closed the link") -> None:
        """End the link and every stream on it; what was put before is sent, as far as the kernel
        accepts it."""
        self._flush()
        self._lose(LinkLost(f"{self.peer}: {reason}"))

    def beat(self) -> None:
        """Say that this end is there; by the heart's thread."""
        try:
            self._outbox.put_if_empty(*self._build_heartbeat())
            if self._outbox.size:
                self._loop.call_soon_threadsafe(self._flush_soon)
        except OSError as error:
            self._loop.call_soon_threadsafe(self._on_broken, error)

    def _build_heartbeat(self) -> tuple[bytes, bytes, bytes]:
        state = self._state
        late_s = max(0.0, time.monotonic() - self._ran_at - TICK_S)
        return pack_header(BEAT, LINK, _LATE.size + len(state)), _LATE.pack(late_s), state

    def _put_parts(self, parts: Iterable[Buffer]) -> None:
        self._outbox.put(*parts)
        self._is_full |= not self.has_room
        self._flush_soon()

    def _flush_soon(self) -> None:
        if not self._flushing and not self._writing:
            self._flushing = True
            self._loop.call_soon(self._flush)

    def _flush(self) -> None:
        self._flushing = False
        if self.is_lost:
            return
        try:
            self._outbox.flush()
        except OSError as error:
            self._on_broken(error)
            return
        if not self._outbox.size:
            self._emptied.set()
        if bool(self._outbox.size) != self._writing:
            self._writing = not self._writing
            if self._writing:
                self._loop.add_writer(self._socket, self._flush)
            else:
                self._loop.remove_writer(self._socket)
        # WHY here: the kernel may take everything at once, and never report that it has room.
        if self._is_full and self.has_room:
            self._is_full = False
            for stream in self._streams.values():
                stream.look_again()

    def _wait_until_readable(self) -> None:
        try:
            count = self._socket.recv_into(self._buffer)
        except (BlockingIOError, InterruptedError):
            return
        except OSError as error:
            self._on_broken(error)
            return
        if not count:
            self._lose(ConnectionClosed(f"{self.peer} has closed the link"))
            return
        self._take_in(self._buffer[:count])

    def _take_in(self, data: memoryview) -> None:
        self._monitor.on_data()
        try:
            for frame in self._parser.feed(data):
                self._on_frame(frame)
                if self._lost.done():
                    return
        except LinkLost as error:
            self._lose(error)

    def _on_frame(self, frame: Frame) -> None:
        if frame.stream == LINK:
            self._on_link_frame(frame)
            return
        stream = self._streams.get(frame.stream)
        if stream is None and frame.stream > self._latest:
            stream = self._on_opened(frame)
        if stream is not None:  # else its end and this frame have crossed
            stream.arrive(frame)

    def _on_link_frame(self, frame: Frame) -> None:
        if frame.kind == BEAT and len(frame.body) >= _LATE.size:
            check_loop(_LATE.unpack_from(frame.body)[0])
            if self._on_state is not None and len(frame.body) > _LATE.size:
                self._on_state(frame.body[_LATE.size :])
        elif frame.kind >= FIRST_OF_USER and self._on_message is not None:
            self._on_message(frame.kind, frame.body)
        else:
            raise ProtocolError(f"a frame of unknown kind {frame.kind} arrived")

    def _on_opened(self, frame: Frame) -> LinkStream:
        if (
            self._side is LinkSide.CONNECTED
            or frame.kind < FIRST_OF_USER
            or self._on_stream is None
        ):
            raise ProtocolError(
                f"a frame of kind {frame.kind} arrived for a stream that is not open"
            )
        if len(self._streams) >= MAX_STREAMS:
            raise ProtocolError(f"more than {MAX_STREAMS} streams were opened")
        self._latest = frame.stream
        stream = self._add(frame.stream)
        self._on_stream(stream)
        return stream

    def _add(self, number: int) -> LinkStream:
        stream = self._streams[number] = LinkStream(self, number)
        return stream

    def _check_heartbeat(self) -> None:
        self._ran_at = time.monotonic()
        try:
            self._monitor.tick(self._ran_at)
        except LinkLost as error:
            self._lose(error)
        else:
            self._ticking = self._loop.call_later(TICK_S, self._check_heartbeat)

    def _on_broken(self, error: OSError) -> None:
        # An ended process resets the connection; a network fails with other errors.
        kind = ConnectionClosed if isinstance(error, ConnectionError) else LinkLost
        self._lose(kind(f"the connection to {self.peer} broke: {error.strerror or error}"))

    def _lose(self, error: LinkLost) -> None:
        if self._lost.done():
            return
        self._lost.set_result(error)
        self._emptied.set()
        self._ticking.cancel()
        self._heartbeat.remove(self)
        self._loop.remove_reader(self._socket)
        self._loop.remove_writer(self._socket)
        self._socket.close()
        if self._on_lost is not None:
            self._on_lost(error)
        for stream in list(self._streams.values()):
            stream.lose(error)
        self._streams.clear()
