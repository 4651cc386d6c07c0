"""One conversation on a link: frames in order each way, with separate credit for each."""

from __future__ import annotations

import asyncio
import contextlib
from collections import deque
from typing import Protocol

from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.frames import CREDIT, END, FIRST_OF_USER, HEADER, Frame
from cantata.ipc.wire import Buffer

WINDOW_BYTES = 256 << 10
"""What an end may send beyond what the other one has taken. The last frame may exceed it."""
CREDITS_PER_WINDOW = 4
"""Credit is returned when this part of it was taken."""
_CREDIT_BYTES = 4


class Carrier(Protocol):
    """The link of a stream."""

    @property
    def has_room(self) -> bool:
        """Whether another frame may wait for the kernel."""
        ...

    def put(self, kind: int, stream: int, parts: tuple[Buffer, ...] = ()) -> None:
        """Send a frame; raises LinkLost."""
        ...

    def forget(self, stream: int) -> None:
        """Both ends have ended it."""
        ...

    def close(self, reason: str) -> None:
        """End the link and every stream on it."""
        ...


class LinkStream:
    """One end of it."""

    def __init__(self, link: Carrier, number: int) -> None:
        self.number = number
        self._link = link
        self.arrived_bytes = 0
        """Of the other end's frames so far, credit and ends left out."""
        self._may_send = WINDOW_BYTES
        self._outstanding = 0
        """Bytes that arrived and for which no credit was returned."""
        self._owed = 0
        """Of these, those that were taken."""
        self._arrived: deque[Frame] = deque()
        self._news = asyncio.Event()
        """Something arrived, the other end has ended, or the link is lost."""
        self._over = asyncio.Event()
        """The other end has ended, or the link is lost."""
        self._room = asyncio.Event()
        """Something that a sender waits for may have changed."""
        self._ended = False
        self._other_ended = False
        """Its last frame has arrived; it may not have been taken."""
        self._lost: LinkLost | None = None

    async def send(self, kind: int, *parts: Buffer) -> None:
        """Send a frame, once there is credit for one; other streams of the link are not held up.
        After this end's `end`, nothing is sent, not even what already waits for credit.

        Args:
            kind: at least `FIRST_OF_USER`.
            parts: of the body, in order; not to be changed afterwards.

        Raises:
            LinkLost: it cannot arrive any more.
        """
        while self._is_open and not self.can_send:
            self._room.clear()
            await self._room.wait()
        if self._lost is not None:
            raise self._lost
        if not self._ended:
            self._put(kind, parts)

    @property
    def can_send(self) -> bool:
        """Whether `send` would not wait, and the frame could arrive."""
        return self._is_open and self._may_send > 0 and self._link.has_room

    def post(self, kind: int, *parts: Buffer) -> None:
        """Send a frame at once: the one that opens the stream, for which there is always credit, or
        one for which `can_send` has said so. Raises LinkLost: it cannot arrive any more."""
        self._put(kind, parts)

    async def receive(self) -> Frame | None:
        """The next frame, which returns credit for it; None: the other end has ended. Raises
        LinkLost: nothing more arrives."""
        while not self._arrived:
            if self._other_ended:
                return None
            if self._lost is not None:
                raise self._lost
            self._news.clear()
            await self._news.wait()
        frame = self._arrived.popleft()
        if frame.kind == END:
            return frame if frame.body else None
        self._take(HEADER.size + len(frame.body))
        return frame

    async def wait_until_ended(self) -> None:
        """Return when the other end has ended or is lost, however much of its data was taken."""
        await self._over.wait()

    def end(self, *parts: Buffer) -> None:
        """Send nothing more; without effect the second time, and on a lost link. `parts`: of a last
        body, which `receive` gives the other end as a frame of kind `END`; none: it gives None."""
        if self._ended:
            return
        self._ended = True
        self._room.set()
        if self._lost is not None:
            return
        with contextlib.suppress(LinkLost):
            self._link.put(END, self.number, parts)
        if self._other_ended:
            self._link.forget(self.number)

    def reject(self, error: ProtocolError) -> ProtocolError:
        """End the link: what arrived here was no message. Returns the error."""
        self._link.close(error.reason)
        return error

    def arrive(self, frame: Frame) -> None:
        """A frame of the other end; called by the link. Raises ProtocolError: the other end had no
        credit for it, or has ended, or it is no such frame."""
        if self._other_ended:
            raise ProtocolError(f"a frame of kind {frame.kind} arrived after its stream's end")
        match frame.kind:
            case kind if kind >= FIRST_OF_USER:
                if self._outstanding >= WINDOW_BYTES:
                    raise ProtocolError("a stream's frame arrived without credit")
                size = HEADER.size + len(frame.body)
                self._outstanding += size
                self.arrived_bytes += size
                self._arrived.append(frame)
                self._news.set()
            case kind if kind == END:
                self._other_ended = True
                self._arrived.append(frame)
                self._news.set()
                self._over.set()
                if self._ended:
                    self._link.forget(self.number)
            case kind if kind == CREDIT and len(frame.body) == _CREDIT_BYTES:
                self._may_send += int.from_bytes(frame.body, "big")
                if self._may_send > WINDOW_BYTES:
                    raise ProtocolError("credit arrived for more than was sent")
                self._room.set()
            case kind:
                raise ProtocolError(f"a frame of unknown kind {kind} arrived")

    def look_again(self) -> None:
        """The link has room again; called by the link."""
        self._room.set()

    def lose(self, error: LinkLost) -> None:
        """The link is lost; called by the link."""
        self._lost = error
        self._news.set()
        self._over.set()
        self._room.set()

    @property
    def _is_open(self) -> bool:
        """This end may send."""
        return self._lost is None and not self._ended

    def _put(self, kind: int, parts: tuple[Buffer, ...]) -> None:
        self._may_send -= HEADER.size + sum(memoryview(part).nbytes for part in parts)
        self._link.put(kind, self.number, parts)

    def _take(self, size: int) -> None:
        self._owed += size
        due = self._owed >= WINDOW_BYTES // CREDITS_PER_WINDOW
        if due and not self._other_ended and self._lost is None:
            self._outstanding -= self._owed
            self._link.put(CREDIT, self.number, (self._owed.to_bytes(_CREDIT_BYTES, "big"),))
            self._owed = 0
