"""How a link ends."""

from __future__ import annotations


class LinkLost(ConnectionError):
    """The link and every stream on it are over: the other end has closed or cannot be reached."""

    @property
    def reason(self) -> str:
        """Why the link ended, in words."""
        return str(self.args[0]) if self.args else "the link is closed"


class ConnectionClosed(LinkLost):
    """The other end has closed the connection, or its process has ended."""


class ProtocolError(LinkLost):
    """What arrived is not a message, or not one that may come now. Nothing after it can be read."""


class HeartbeatTimeout(LinkLost):
    """The other end was silent for too long."""


class PeerHung(LinkLost):
    """The other end sends heartbeats, but its event loop hangs."""


class Refused(LinkLost):
    """The other end has another key, another version, or is no end of a link."""
