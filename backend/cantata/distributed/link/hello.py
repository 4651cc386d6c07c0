"""The first frames of a link: both ends show that they have the key, and never send it.

Each end sends a random challenge, then the HMAC-SHA-256 (RFC 2104) of both challenges under the
key. What an end says about itself is part of the HMAC, so that neither's proof serves as the
other's. The key protects the hello, not the bytes that follow: a network that others can write to
needs TLS (`link.tls`) or a tunnel.
"""

from __future__ import annotations

import hmac
import secrets
import struct
from enum import Enum

from cantata.distributed.key import LinkKey
from cantata.distributed.link.errors import Refused

VERSION = 5
"""Of frames, messages and their fields; ends of different versions do not connect."""
_MAGIC = b"CnTaLink"
_CHALLENGE_BYTES = 32
_HELLO = struct.Struct(f"!8sI{_CHALLENGE_BYTES}s")


class LinkSide(bytes, Enum):
    CONNECTED = b"connected"
    ACCEPTED = b"accepted"

    @property
    def other(self) -> LinkSide:
        return LinkSide.ACCEPTED if self is LinkSide.CONNECTED else LinkSide.CONNECTED


class Hello:
    """One end's part in it. `key`: that both have."""

    def __init__(self, side: LinkSide, key: LinkKey) -> None:
        self._side, self._key = side, key
        self._mine = secrets.token_bytes(_CHALLENGE_BYTES)
        self._theirs = b""

    @property
    def hello(self) -> bytes:
        """The body of this end's first frame."""
        return _HELLO.pack(_MAGIC, VERSION, self._mine)

    def prove(self, theirs: bytes) -> bytes:
        """The body of this end's second frame, from the other end's first. Raises Refused: that is
        not a hello, or one of another version."""
        if len(theirs) != _HELLO.size:
            raise Refused("the other end does not speak the protocol of links")
        magic, version, challenge = _HELLO.unpack(theirs)
        if magic != _MAGIC:
            raise Refused("the other end does not speak the protocol of links")
        if version != VERSION:
            raise Refused(f"the other end speaks version {version} of the protocol, not {VERSION}")
        if hmac.compare_digest(challenge, self._mine):
            raise Refused("the other end sent this end's challenge back")
        self._theirs = challenge
        return self._compute_proof(self._side)

    def check(self, proof: bytes) -> None:
        """Check the other end's second frame. Raises Refused: it does not have the key."""
        if not hmac.compare_digest(proof, self._compute_proof(self._side.other)):
            raise Refused("the other end has another key")

    def _compute_proof(self, side: LinkSide) -> bytes:
        ordered = (
            (self._mine, self._theirs)
            if self._side is LinkSide.CONNECTED
            else (self._theirs, self._mine)
        )
        text = b"|".join((_MAGIC, str(VERSION).encode(), side.value, *ordered))
        return hmac.digest(self._key.secret, text, "sha256")
