"""A port from which several servers of one user on this machine accept.

Each server has a listening socket of its own, and the kernel spreads new connections over them
(`SO_REUSEPORT`). Closing such a socket resets the connections that the kernel has set up and the
server has not accepted yet. So none is closed while another server can accept from it: a server
that stops gives its listening sockets to another one, and a server that has several gives one to
the next that starts. Servers find each other by abstract Unix sockets.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import secrets
import socket
from collections.abc import Callable, Sequence
from pathlib import Path

from cantata.api.server.listening import BACKLOG
from cantata.utils.peer_credentials import require_same_uid

logger = logging.getLogger(__name__)

_ANSWER_S = 1.0
"""A server that has not answered after this long is not waited for: it hangs, or has gone."""
_MAX_SOCKETS = 64
"""Passed on at a time; a server has as many as servers have stopped and not been replaced."""
_UNIX_SOCKETS = Path("/proc/net/unix")
_IS_LISTENING = 0x10000
_ASK, _GIVE, _TAKEN, _NONE = b"?", b"+", b"y", b"n"

Change = Callable[[socket.socket], None]
"""Begin or stop accepting from a listening socket."""


class SharedPort:
    """One server's part of a shared port.

    Args:
        bound: to the port, with `SO_REUSEPORT`; not listening yet. Its creator closes it, too.
        begin: called to accept from a socket.
        end: called to accept from it no longer.
    """

    def __init__(self, bound: socket.socket, begin: Change, end: Change) -> None:
        self._bound, self._begin, self._end = bound, begin, end
        host, port = bound.getsockname()[:2]
        self._prefix = f"cantata/port/{host}:{port}/"
        self._listeners: list[socket.socket] = []
        self._control_socket: socket.socket | None = None
        self._handoffs: set[asyncio.Task[None]] = set()

    @property
    def alone(self) -> bool:
        """Whether no other server accepts from the port."""
        return not self._list_others()

    async def join(self) -> None:
        """Accept, from a socket that another server can spare or from an own one. Raises OSError: a
        server that shares nothing listens on the port since it was bound."""
        spare = await asyncio.to_thread(self._ask)
        if spare is None:
            spare = self._bound
            spare.listen(BACKLOG)
        self._take([spare])
        self._open_control_socket()
        logger.info("accepts from the port beside %d other servers", len(self._list_others()))

    async def leave(self) -> bool:
        """Give all listening sockets to another server.

        Returns:
            False: there is none, and this one still accepts.
        """
        if self._control_socket is not None:
            asyncio.get_running_loop().remove_reader(self._control_socket)
            self._control_socket.close()
        if self._handoffs:
            await asyncio.wait(self._handoffs)
        if not self._listeners:  # it never joined
            return True
        for listener in self._listeners:
            self._end(listener)
        if not await asyncio.to_thread(self._give):
            for listener in self._listeners:
                self._begin(listener)
            return False
        self.close()
        logger.info("another server accepts from the port now")
        return True

    def close(self) -> None:
        for listener in self._listeners:
            listener.close()
        self._listeners.clear()

    def _take(self, listeners: Sequence[socket.socket]) -> None:
        for listener in listeners:
            listener.setblocking(False)
            self._listeners.append(listener)
            self._begin(listener)

    # What others ask of this server.

    def _open_control_socket(self) -> None:
        self._control_socket = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        self._control_socket.setblocking(False)
        self._control_socket.bind(f"\0{self._prefix}{secrets.token_hex(8)}")
        self._control_socket.listen()
        asyncio.get_running_loop().add_reader(self._control_socket, self._on_handoff)

    def _on_handoff(self) -> None:
        assert self._control_socket is not None
        with contextlib.suppress(BlockingIOError, InterruptedError, ConnectionAbortedError):
            visitor, _ = self._control_socket.accept()
            task = asyncio.create_task(self._serve_handoff(visitor), name="cantata:shared-port")
            self._handoffs.add(task)
            task.add_done_callback(self._handoffs.discard)

    async def _serve_handoff(self, visitor: socket.socket) -> None:
        with visitor:
            try:
                require_same_uid(visitor)
                visitor.settimeout(_ANSWER_S)
                wish, given = await asyncio.to_thread(_receive, visitor)
                if wish == _GIVE:
                    self._take(given)
                    visitor.sendall(_TAKEN)
                elif wish == _ASK:
                    await self._give_spare(visitor)
            except OSError as error:
                logger.warning("a server that shares the port left in the middle: %s", error)

    async def _give_spare(self, visitor: socket.socket) -> None:
        if len(self._listeners) < 2:
            visitor.sendall(_NONE)
            return
        spare = self._listeners.pop()
        self._end(spare)
        if await asyncio.to_thread(_hand_over, visitor, [spare]):
            spare.close()
        else:
            self._take([spare])

    # What this server asks of others. These wait, in a thread.

    def _ask(self) -> socket.socket | None:
        for address in self._list_others():
            with contextlib.suppress(OSError), _connect(address) as other:
                other.sendall(_ASK)
                _, given = _receive(other)
                if given:
                    other.sendall(_TAKEN)
                    return given[0]
        return None

    def _give(self) -> bool:
        for address in self._list_others():
            with contextlib.suppress(OSError), _connect(address) as other:
                if _hand_over(other, self._listeners):
                    return True
        return False

    def _list_others(self) -> list[str]:
        try:
            lines = _UNIX_SOCKETS.read_text(encoding="utf-8", errors="replace").splitlines()
        except FileNotFoundError:
            return []
        own = (
            None
            if self._control_socket is None or self._control_socket.fileno() < 0
            else self._control_socket.getsockname()
        )
        found = [
            f"\0{words[-1][1:]}"
            for words in map(str.split, lines[1:])
            if words[-1].startswith("@" + self._prefix) and int(words[3], 16) & _IS_LISTENING
        ]
        return [address for address in found if address.encode() != own]


def _connect(address: str) -> socket.socket:
    """Raises OSError."""
    other = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    try:
        other.settimeout(_ANSWER_S)
        other.connect(address)
        require_same_uid(other)
    except OSError:
        other.close()
        raise
    return other


def _receive(other: socket.socket) -> tuple[bytes, list[socket.socket]]:
    """One message and the sockets in it. Raises OSError."""
    message, descriptors, _, _ = socket.recv_fds(other, 1, _MAX_SOCKETS)
    return message, [socket.socket(fileno=descriptor) for descriptor in descriptors]


def _hand_over(other: socket.socket, listeners: Sequence[socket.socket]) -> bool:
    """Whether the other server has taken them."""
    try:
        socket.send_fds(other, [_GIVE], [listener.fileno() for listener in listeners])
        return _receive(other)[0] == _TAKEN
    except OSError:
        return False
