"""Accepts connections within the limit on file descriptors, which keeps some free for other work.

asyncio accepts every connection. At the descriptor limit it logs a traceback per attempt, and
nothing else in the process can open a file or restart a stage. Here, connections beyond the limit
wait in the kernel's queue, after idle ones have been closed to make room.
"""

from __future__ import annotations

import asyncio
import errno
import logging
import os
import resource
import socket
from collections.abc import Callable
from typing import Protocol

logger = logging.getLogger(__name__)

_WANTED_DESCRIPTORS = 65_536
_RESERVE = 64
"""Kept for files, for connections that are being accepted, and for restarting a stage."""
_MIN_CONNECTIONS = 8
_MAX_CONNECTIONS = 10_000
_AT_ONCE = 32
"""Accepted in one turn of the event loop; the reserve of descriptors covers them."""
_FULL_PAUSE_S = 0.05
_EXHAUSTED_PAUSE_S = 0.25
_LOG_INTERVAL_S = 60.0
_EXHAUSTED = frozenset({errno.EMFILE, errno.ENFILE, errno.ENOBUFS, errno.ENOMEM})


def raise_descriptor_limit() -> None:
    """Raise the soft limit on descriptors up to the hard limit, within reason."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    wanted = _WANTED_DESCRIPTORS if hard == resource.RLIM_INFINITY else hard
    wanted = min(wanted, _WANTED_DESCRIPTORS)
    if soft == resource.RLIM_INFINITY or soft >= wanted:
        return
    try:
        resource.setrlimit(resource.RLIMIT_NOFILE, (wanted, hard))
    except (OSError, ValueError) as error:
        logger.warning("the limit on open files stays at %d: %s", soft, error)


def compute_connection_limit() -> int:
    """Connections that leave the reserve untouched, counted from what is open now."""
    soft, _ = resource.getrlimit(resource.RLIMIT_NOFILE)
    if soft == resource.RLIM_INFINITY:
        return _MAX_CONNECTIONS
    spare = soft - len(os.listdir("/dev/fd")) - _RESERVE
    return min(max(spare, _MIN_CONNECTIONS), _MAX_CONNECTIONS)


class Idle(Protocol):
    """A connection without a request."""

    def make_room(self) -> None:
        """Close it."""


class ConnectionGate:
    """Counts connections and knows which of them can be closed without harm."""

    def __init__(self, limit: int, count: Callable[[], int]) -> None:
        self.limit = limit
        self._count = count
        self._accepting = 0
        self._leaving = 0
        self._idle: dict[Idle, None] = {}
        """Oldest first."""

    @property
    def open(self) -> int:
        """Connections open or about to be."""
        return self._count() + self._accepting - self._leaving

    def idle(self, connection: Idle) -> None:
        """Note that a connection has no request."""
        self._idle.setdefault(connection)

    def busy(self, connection: Idle) -> None:
        """Note that a connection has a request, or is closed."""
        self._idle.pop(connection, None)

    def has_room(self) -> bool:
        """Whether one more may be accepted; closes the longest idle connection if need be."""
        if self.open < self.limit:
            return True
        if not self._idle:
            return False
        oldest = next(iter(self._idle))
        del self._idle[oldest]
        # Its descriptor is freed in the next turn of the loop.
        self._leaving += 1
        asyncio.get_running_loop().call_later(0, self._on_left)
        oldest.make_room()
        return True

    def accepting(self, number: int) -> None:
        """This many more (or fewer) connections are between `accept` and their protocol."""
        self._accepting += number

    def _on_left(self) -> None:
        self._leaving -= 1


class Acceptor:
    """Accepts from one listening socket. `listener`: non-blocking; its creator closes it."""

    def __init__(
        self,
        listener: socket.socket,
        gate: ConnectionGate,
        make_protocol: Callable[[], asyncio.Protocol],
    ) -> None:
        self._listener = listener
        self._gate = gate
        self._make_protocol = make_protocol
        self._loop = asyncio.get_running_loop()
        self._tasks: set[asyncio.Task[None]] = set()
        self._pause: asyncio.TimerHandle | None = None
        self._logged_at: float | None = None
        self._resume()

    def close(self) -> None:
        if self._pause is not None:
            self._pause.cancel()
        self._loop.remove_reader(self._listener)

    def _resume(self) -> None:
        self._pause = None
        self._loop.add_reader(self._listener, self._accept_waiting)

    def _wait(self, seconds: float) -> None:
        self._loop.remove_reader(self._listener)
        self._pause = self._loop.call_later(seconds, self._resume)

    def _accept_waiting(self) -> None:
        for _ in range(_AT_ONCE):
            if not self._gate.has_room():
                self._wait(_FULL_PAUSE_S)
                return
            try:
                connection, _ = self._listener.accept()
            except (BlockingIOError, InterruptedError, ConnectionAbortedError):
                return
            except OSError as error:
                self._log(error)
                self._wait(_EXHAUSTED_PAUSE_S if error.errno in _EXHAUSTED else _FULL_PAUSE_S)
                return
            self._gate.accepting(1)
            task = self._loop.create_task(self._connect(connection), name="cantata:accept")
            self._tasks.add(task)
            task.add_done_callback(self._tasks.discard)

    async def _connect(self, connection: socket.socket) -> None:
        try:
            connection.setblocking(False)
            await self._loop.connect_accepted_socket(self._make_protocol, connection)
        except OSError as error:
            connection.close()
            logger.debug("a connection broke while being accepted: %s", error)
        finally:
            self._gate.accepting(-1)

    def _log(self, error: OSError) -> None:
        now = self._loop.time()
        if self._logged_at is None or now - self._logged_at >= _LOG_INTERVAL_S:
            self._logged_at = now
            logger.warning("cannot accept connections at the moment: %s", error)
