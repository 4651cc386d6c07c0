"""What one end still has to send: whole frames in order, from the event loop and from the thread
that sends heartbeats."""

from __future__ import annotations

import threading
from collections import deque
from itertools import islice

from cantata.distributed.link.tls import LinkSocket
from cantata.ipc.wire import Buffer

_AT_ONCE = 512
"""Buffers handed to the kernel in one call: those of about 128 chunks of sound."""


class LinkOutbox:
    """Frames that wait for the kernel to take them. All methods may be called from any thread.
    `sock`: connected and non-blocking; its owner closes it."""

    def __init__(self, sock: LinkSocket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        self._waiting: deque[bytes | memoryview] = deque()
        self.size = 0
        """Bytes that wait."""

    def put(self, *parts: Buffer) -> None:
        """Queue one frame; `flush` sends it with all others. `parts`: that the frame consists of,
        in order; not to be changed afterwards."""
        with self._lock:
            self._append(parts)

    def put_if_empty(self, *parts: Buffer) -> None:
        """Queue one frame unless others wait already; in both cases, offer what waits to the
        kernel. Raises OSError: the connection is broken."""
        with self._lock:
            if not self.size:
                self._append(parts)
            self._send()

    def flush(self) -> None:
        """Offer the kernel what waits. Raises OSError: the connection is broken."""
        with self._lock:
            self._send()

    def _append(self, parts: tuple[Buffer, ...]) -> None:
        for part in parts:
            view = part if type(part) is bytes else memoryview(part).cast("B")
            if view:
                self._waiting.append(view)
                self.size += len(view)

    def _send(self) -> None:
        while self._waiting:
            try:
                sent = self._socket.sendmsg(list(islice(self._waiting, _AT_ONCE)))
            except (BlockingIOError, InterruptedError):
                return
            self.size -= sent
            while sent:
                first = self._waiting[0]
                if len(first) > sent:
                    self._waiting[0] = memoryview(first)[sent:]
                    return
                sent -= len(first)
                self._waiting.popleft()
