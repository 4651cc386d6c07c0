"""Finds clients whose machine or network has vanished, and closes their connections.

The kernel's own limit (TCP_USER_TIMEOUT) cannot distinguish such a client from one that is alive
but has stopped reading, perhaps for minutes. `TCP_INFO` can: a live machine acknowledges data
and probes, whether or not its program reads.
"""

from __future__ import annotations

import asyncio
import socket
import struct
from collections.abc import Callable, Iterable
from dataclasses import dataclass

_INFO = struct.Struct("=8B13I")
"""The beginning of Linux' `struct tcp_info`."""
_PROBES, _UNACKED, _LAST_DATA_SENT, _LAST_ACK_RECEIVED = 3, 12, 17, 20
_MIN_PROBES = 3
_CHECKS_PER_LIMIT = 10


class DeadPeers:
    """Watches connections until it is closed. `unanswered_s`: how long a client's machine may leave
    data or probes unacknowledged."""

    def __init__(
        self, transports: Callable[[], Iterable[asyncio.Transport]], unanswered_s: float
    ) -> None:
        self._transports = transports
        self._limit_s = unanswered_s
        self._interval_s = unanswered_s / _CHECKS_PER_LIMIT
        self._loop = asyncio.get_running_loop()
        self._asking_since: dict[asyncio.Transport, float] = {}
        self._timer: asyncio.TimerHandle | None = None
        if hasattr(socket, "TCP_INFO"):  # Linux
            self._timer = self._loop.call_later(self._interval_s, self._check)

    def close(self) -> None:
        if self._timer is not None:
            self._timer.cancel()

    def _check(self) -> None:
        self._timer = self._loop.call_later(self._interval_s, self._check)
        now = self._loop.time()
        asking: dict[asyncio.Transport, float] = {}
        for transport in list(self._transports()):
            asked = _find_unacknowledged(transport)
            if asked is None:
                continue
            since = self._asking_since.get(transport, now)
            if asked.answered_s < now - since:
                since = now
            if now - since >= self._limit_s and asked.in_vain(self._interval_s):
                transport.abort()
            else:
                asking[transport] = since
        self._asking_since = asking


@dataclass(frozen=True, slots=True)
class _Asked:
    """Data or probes that a client's machine has not acknowledged."""

    answered_s: float
    """Seconds since the peer last acknowledged anything."""
    sent_s: float
    """Seconds since data was last sent or sent again."""
    data: bool
    probes: int

    def in_vain(self, patience_s: float) -> bool:
        """Whether what was sent last went unanswered despite enough time. A machine without
        room for data is probed ever more rarely, but it answers."""
        sent = self.data and patience_s <= self.sent_s < self.answered_s
        return sent or self.probes >= _MIN_PROBES


def _find_unacknowledged(transport: asyncio.Transport) -> _Asked | None:
    """What the client's machine has not acknowledged; None if nothing."""
    connection = transport.get_extra_info("socket")
    try:
        answer = connection.getsockopt(socket.IPPROTO_TCP, socket.TCP_INFO, _INFO.size)
    except OSError:
        return None
    if len(answer) < _INFO.size:
        return None
    info = _INFO.unpack(answer)
    if not (info[_UNACKED] or info[_PROBES]):
        return None
    return _Asked(
        info[_LAST_ACK_RECEIVED] / 1000,
        info[_LAST_DATA_SENT] / 1000,
        info[_UNACKED] > 0,
        info[_PROBES],
    )
