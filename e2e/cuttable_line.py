"""A line to a server whose WebSockets a test cuts, as a network does that goes away."""

from __future__ import annotations

import socket
import struct
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from threading import Lock, Thread
from urllib.parse import urlsplit

_PIECE = 1 << 16
_AT_ONCE = struct.pack("ii", 1, 0)
"""SO_LINGER: a close is a reset, and what was not sent is lost."""


class CuttableLine:
    """Passes bytes on, both ways.

    Args:
        listener: takes the connections.
        target: the server's host and port.
    """

    def __init__(self, listener: socket.socket, target: tuple[str, int]) -> None:
        self.url = f"http://127.0.0.1:{listener.getsockname()[1]}"
        self._listener, self._target = listener, target
        self._upgraded: set[socket.socket] = set()
        self._lock = Lock()
        Thread(target=self._accept, daemon=True).start()

    def cut(self) -> int:
        """Reset every WebSocket; returns their number."""
        with self._lock:
            ends, self._upgraded = self._upgraded, set()
            for end in ends:
                end.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _AT_ONCE)
                # Wakes the thread that reads, whose close is then the reset.
                with suppress(OSError):
                    end.shutdown(socket.SHUT_RD)
        return len(ends) // 2

    def _accept(self) -> None:
        with suppress(OSError):  # closed: the test is over
            while True:
                near, _ = self._listener.accept()
                Thread(target=self._join, args=(near,), daemon=True).start()

    def _join(self, near: socket.socket) -> None:
        far = socket.create_connection(self._target)
        first = near.recv(_PIECE)
        if b"upgrade: websocket" in first.lower():
            with self._lock:
                self._upgraded |= {near, far}
        with suppress(OSError):
            far.sendall(first)
        back = Thread(target=_pass_on, args=(far, near), daemon=True)
        back.start()
        _pass_on(near, far)
        back.join()
        with self._lock:
            self._upgraded -= {near, far}
            near.close()
            far.close()


def _pass_on(source: socket.socket, sink: socket.socket) -> None:
    with suppress(OSError):
        while piece := source.recv(_PIECE):
            sink.sendall(piece)
    lingers = sink.getsockopt(socket.SOL_SOCKET, socket.SO_LINGER, len(_AT_ONCE)) == _AT_ONCE
    with suppress(OSError):
        if not lingers:
            sink.shutdown(socket.SHUT_WR)


@contextmanager
def cuttable_line(url: str) -> Iterator[CuttableLine]:
    """A line to the server at `url`."""
    parts = urlsplit(url)
    assert parts.hostname is not None
    assert parts.port is not None
    with socket.create_server(("127.0.0.1", 0)) as listener:
        line = CuttableLine(listener, (parts.hostname, parts.port))
        yield line
        line.cut()
