"""Deletion tokens: whoever has a voice's token may delete the voice.

An upload returns the token once. The server keeps only a digest, so that no token can leak from
its disk or its memory.
"""

from __future__ import annotations

import hashlib
import hmac
import secrets

_TOKEN_BYTES = 32


def new_token() -> str:
    """A token that cannot be guessed, valid in a header."""
    return secrets.token_urlsafe(_TOKEN_BYTES)


def digest(token: str) -> str:
    """The part of a token that is kept. Tokens are random, so one round without salt suffices."""
    return hashlib.sha256(token.encode("utf-8", "surrogatepass")).hexdigest()


def is_token_of(kept: str | None, shown: str | None) -> bool:
    """Whether a token belongs to a digest, checked in constant time. A digest of None has no
    token."""
    return kept is not None and shown is not None and hmac.compare_digest(kept, digest(shown))
