"""How a link ends."""

from __future__ import annotations


class LinkLost(ConnectionError):
    """The link is over, and every stream on it: the other end has closed or cannot be reached."""

    @property
    def reason(self) -> str:
        """For people."""
        return str(self.args[0]) if self.args else "the link is closed"


class Gone(LinkLost):
    """The other end has closed the connection, or its process is no more."""


class Garbage(LinkLost):
    """What arrived is no message, or none that may come now. Nothing after it can be read."""


class Silent(LinkLost):
    """The other end was not heard for too long."""


class Hung(LinkLost):
    """The other end is heard, and its event loop hangs."""


class Refused(LinkLost):
    """The other end has another key, another version, or is no end of a link."""
