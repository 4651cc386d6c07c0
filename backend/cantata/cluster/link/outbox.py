"""What one end still has to send: whole frames in order, from the event loop and from the thread
that beats."""

from __future__ import annotations

import socket
import threading
from collections import deque
from itertools import islice

Buffer = bytes | bytearray | memoryview
_AT_ONCE = 64
"""Buffers handed to the kernel in one call."""


class Outbox:
    """Frames that wait for the kernel to take them. All methods may be called from any thread.

    Args:
        sock: connected and non-blocking; it stays its owner's.
    """

    def __init__(self, sock: socket.socket) -> None:
        self._socket = sock
        self._lock = threading.Lock()
        self._waiting: deque[memoryview] = deque()
        self.size = 0
        """Bytes that wait."""

    def put(self, *parts: Buffer) -> None:
        """Send one frame, as far as the kernel takes it now.

        Args:
            parts: that the frame consists of, in order; not to be changed afterwards.

        Raises:
            OSError: the connection is broken.
        """
        with self._lock:
            self._append(parts)
            self._send()

    def put_if_empty(self, *parts: Buffer) -> bool:
        """The same unless something waits already; whether it was done. Either way the kernel is
        offered what waits.

        Raises:
            OSError: the connection is broken.
        """
        with self._lock:
            if was_empty := not self.size:
                self._append(parts)
            self._send()
            return was_empty

    def flush(self) -> None:
        """Offer the kernel what waits.

        Raises:
            OSError: the connection is broken.
        """
        with self._lock:
            self._send()

    def _append(self, parts: tuple[Buffer, ...]) -> None:
        for part in parts:
            view = memoryview(part).cast("B")
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
                    self._waiting[0] = first[sent:]
                    return
                sent -= len(first)
                self._waiting.popleft()
