"""A session's socket that outlives its WebSocket: the client may come back with another one."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, MutableMapping
from contextlib import suppress
from dataclasses import dataclass, field
from typing import Any

from starlette.status import (
    WS_1000_NORMAL_CLOSURE,
    WS_1006_ABNORMAL_CLOSURE,
    WS_1008_POLICY_VIOLATION,
)
from starlette.websockets import WebSocket, WebSocketDisconnect

from cantata.api.realtime.resuming.sent_events import SentEvents
from cantata.api.realtime.server_events import SessionResumed
from cantata.speech_input.settings import ResumingSettings

logger = logging.getLogger(__name__)

_DISCONNECT = "websocket.disconnect"
_ELSEWHERE = "the session goes on over another connection"


@dataclass(eq=False)
class SocketLink:
    """The time of a session over one WebSocket."""

    over: asyncio.Event = field(default_factory=asyncio.Event)
    code: int | None = None
    """With which it is to be closed; None: it was closed, or lost."""
    reason: str | None = None


class ResumableSocket:
    """Implements `MessageSocket`, over one WebSocket after the other.

    A WebSocket that is closed ends the session. One that breaks does not: events are kept, and
    written to the next one behind the last that the client has received. If none comes in time, the
    client has left.
    """

    def __init__(self, limits: ResumingSettings, stall_s: float) -> None:
        """`stall_s`: a client that reads nothing for this long is not waited for."""
        self._limits = limits
        self._stall_s = stall_s
        self._sent = SentEvents(limits.max_bytes)
        self._received: asyncio.Queue[MutableMapping[str, Any]] = asyncio.Queue()
        self._count = 0
        self._link: SocketLink | None = None
        self._expiry: asyncio.TimerHandle | None = None
        self._resumed: int | None = None
        """Number of the last `session.resumed`."""
        self._draining = False
        self._ended = False
        self._changed = asyncio.Event()

    @property
    def lost(self) -> bool:
        """Whether there is no connection to the client."""
        return self._link is None

    def check(self, after: str) -> None:
        """Raises `EventsLost` if a client that has received events up to this one cannot go on."""
        self._sent.find(after)

    async def receive(self) -> MutableMapping[str, Any]:
        message = await self._received.get()
        self._change()
        return message

    async def send_text(self, data: str) -> None:
        """Keep an event, and wait until it is written; while the connection is lost, until there is
        room for more."""
        if self._ended:
            raise RuntimeError("the session is over")
        number = self._sent.add(data)
        self._change()
        await self._wait_until(
            lambda: (
                self._ended
                or self._sent.next > number
                or (self._link is None and not self._sent.is_full)
            )
        )

    async def send_bytes(self, data: bytes) -> None:
        raise RuntimeError("a session that can be resumed has events alone")

    async def close(self, code: int = WS_1000_NORMAL_CLOSURE) -> None:
        """End, once everything is written to a client that is there."""
        with suppress(TimeoutError):
            async with asyncio.timeout(self._stall_s):
                await self._wait_until(
                    lambda: self._ended or self._link is None or not self._sent.has_more
                )
        self.end(code)

    def connect(self, after: str | None = None) -> SocketLink:
        """Begin, or go on, over another WebSocket; one that is in use is closed.

        Args:
            after: id of the last event that the client has received; None: there was none.

        Raises:
            EventsLost: not all events after it are kept; nothing has changed.
        """
        if after is not None:
            self._sent.seek(after)
            if self._resumed is not None:  # told again, as of now
                self._sent.withdraw(self._resumed)
            told = SessionResumed(received=self._count)
            self._resumed = self._sent.add(told.model_dump_json())
        self._release_link(WS_1008_POLICY_VIOLATION, _ELSEWHERE)
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._link = SocketLink()
        self._change()
        return self._link

    async def carry(self, socket: WebSocket, link: SocketLink) -> None:
        """Exchange messages over an accepted WebSocket, until it breaks, is closed, another one
        takes over or the session ends."""
        work = [
            asyncio.create_task(self._read(socket, link), name="realtime:carry-read"),
            asyncio.create_task(link.over.wait(), name="realtime:carry-over"),
        ]
        writing = asyncio.create_task(self._write(socket, link), name="realtime:carry-write")
        try:
            await asyncio.wait(work, return_when=asyncio.FIRST_COMPLETED)
        finally:
            self.drop(link)
            for task in (*work, writing):
                task.cancel()
            await asyncio.wait((*work, writing))
        if link.code is not None:
            with suppress(WebSocketDisconnect, RuntimeError):  # it may have broken meanwhile
                await socket.close(link.code, link.reason)

    def drop(self, link: SocketLink) -> None:
        """The WebSocket has broken: the client may come back for a while."""
        if self._link is not link:
            return
        self._link = None
        link.over.set()
        wait_s = 0.0 if self._draining else self._limits.kept_s
        self._expiry = asyncio.get_running_loop().call_later(wait_s, self._expire)
        self._change()

    def begin_drain(self) -> None:
        """The server is stopping: nobody can come back."""
        self._draining = True
        if self._link is None and not self._ended:
            self._expire()

    def end(self, code: int) -> None:
        """The session is over. `code`: with which a WebSocket that is in use is closed."""
        self._ended = True
        if self._expiry is not None:
            self._expiry.cancel()
            self._expiry = None
        self._release_link(code, None)
        self._change()

    async def _read(self, socket: WebSocket, link: SocketLink) -> None:
        while True:
            message = await socket.receive()
            if self._link is not link:
                return  # not counted: the client sends it again
            if message["type"] == _DISCONNECT:
                if message.get("code") != WS_1006_ABNORMAL_CLOSURE:
                    self._received.put_nowait(message)
                    self._release_link(None, None)
                return
            self._count += 1
            self._received.put_nowait(message)
            await self._wait_until(self._received.empty)

    async def _write(self, socket: WebSocket, link: SocketLink) -> None:
        while True:
            await self._wait_until(lambda: self._sent.has_more)
            try:
                if event := self._sent.peek():
                    await socket.send_text(event)
            except (WebSocketDisconnect, RuntimeError):
                return  # what is read says whether it broke or was closed
            if self._link is not link:
                return
            self._sent.advance()
            self._change()

    def _release_link(self, code: int | None, reason: str | None) -> None:
        """Use the present WebSocket no more."""
        if self._link is not None:
            self._link.code, self._link.reason = code, reason
            self._link.over.set()
            self._link = None

    def _expire(self) -> None:
        logger.debug("a lost client did not come back")
        self._received.put_nowait({"type": _DISCONNECT, "code": WS_1006_ABNORMAL_CLOSURE})

    async def _wait_until(self, holds: Callable[[], bool]) -> None:
        while not holds():
            await self._changed.wait()

    def _change(self) -> None:
        self._changed.set()
        self._changed = asyncio.Event()
