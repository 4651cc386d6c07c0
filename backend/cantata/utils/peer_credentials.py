"""The user at the other end of a Unix socket: an abstract address has no file with permissions."""

from __future__ import annotations

import os
import socket
import struct

_PEER = struct.Struct("3i")
"""Process, user and group of a socket's peer."""


def require_same_uid(sock: socket.socket) -> None:
    """Close the connection if its peer belongs to another user. Raises ConnectionError: it was
    one."""
    credentials = sock.getsockopt(socket.SOL_SOCKET, socket.SO_PEERCRED, _PEER.size)
    if _PEER.unpack(credentials)[1] != os.getuid():
        sock.close()
        raise ConnectionError("a process of another user is at the other end of a Unix socket")
