"""Listening sockets with the options that streams need. Light to import: a taken port is reported
before anything heavy is loaded."""

from __future__ import annotations

import socket
from typing import Any

BACKLOG = 128
"""Connections that the kernel sets up before they are accepted."""
_SEND_BUFFER_BYTES = 256 << 10
_UNREAD_MS = 180_000
"""How long a client may read nothing before the kernel ends its connection: on close, asyncio waits
without limit until everything is sent. `DeadPeers` finds vanished clients sooner."""
_KEEPALIVE_AFTER_S = 5
_KEEPALIVE_INTERVAL_S = 2
"""Idle time after which the kernel probes whether a client is still there."""


def listen(host: str, port: int) -> socket.socket:
    """A listening socket; port 0 takes a free one. Raises OSError: the address is taken, unknown or
    not ours."""
    listener = bound(host, port)
    try:
        # A port can be bound by several sockets until one of them listens.
        listener.listen(BACKLOG)
    except OSError:
        listener.close()
        raise
    return listener


def bound(host: str, port: int, *, shared: bool = False) -> socket.socket:
    """A socket that can listen, and does not do so yet; port 0 takes a free one.

    Args:
        shared: other processes of this user may listen there too.

    Raises:
        OSError: the address is taken, unknown or not ours.
    """
    family, _, _, _, address = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)[0]
    # WHY the protocol: asyncio sends small packets at once only if a socket identifies itself as
    # TCP; otherwise the kernel waits for the client to acknowledge the one before, up to 40 ms.
    listener = socket.socket(family, socket.SOCK_STREAM, socket.IPPROTO_TCP)
    try:
        if shared:
            listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
        bind(listener, address)
    except OSError:
        listener.close()
        raise
    return listener


def bind(listener: socket.socket, address: Any) -> None:
    """Bind a TCP socket, with options that accepted connections inherit.

    The kernel would buffer megabytes for a client that does not read: minutes of speech that a
    cancel can't revoke. Its buffer is kept small, so that the utterance is held back instead.

    Raises:
        OSError: the address is taken, unknown or not ours.
    """
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, _SEND_BUFFER_BYTES)
    listener.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    if hasattr(socket, "TCP_USER_TIMEOUT"):  # Linux
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_USER_TIMEOUT, _UNREAD_MS)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE, _KEEPALIVE_AFTER_S)
        listener.setsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPINTVL, _KEEPALIVE_INTERVAL_S)
    listener.bind(address)
    listener.setblocking(False)


def get_url(listener: socket.socket) -> str:
    """The address for a browser; a wildcard address is shown as this machine's own."""
    host, port = listener.getsockname()[:2]
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(host, host)
    return f"http://[{host}]:{port}" if ":" in host else f"http://{host}:{port}"
