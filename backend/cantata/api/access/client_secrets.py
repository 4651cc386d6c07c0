"""Client secrets: keys that a program gives to a browser or a phone, so that its own stays with it.

Source: OpenAI's `POST /v1/realtime/client_secrets`.
"""

from __future__ import annotations

import hashlib
import json
import re
import secrets
import time
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from cachetools import TLRUCache

from cantata.contract.data.errors import InvalidRequest, Overloaded

MAX_BYTES = 64 << 20
"""Of the settings of all secrets together."""
MAX_SESSION_BYTES = 256 << 10
_EACH = 1024
"""Counted for each besides, so that their number is bounded, too."""
_PREFIX = "ek_"
_FORM = re.compile(rf"{_PREFIX}[0-9a-f]{{48}}")


@dataclass(frozen=True, slots=True)
class ClientSecret:
    """What a secret grants: sessions with these settings."""

    owner: str
    """Label of the key that asked for it; empty: the server needs none."""
    session: dict[str, Any]
    """As of `session.update`."""
    expires_at: float
    """Unix time."""
    size: int
    """Bytes of the settings."""


class ClientSecrets:
    """Those of one server that have not expired. Only digests of their values are kept."""

    def __init__(self, clock: Callable[[], float] = time.time) -> None:
        self._clock = clock
        self._kept: TLRUCache[bytes, ClientSecret] = TLRUCache(
            MAX_BYTES,
            ttu=lambda _, secret, now: secret.expires_at,
            timer=clock,
            getsizeof=lambda secret: secret.size + _EACH,
        )

    def issue(
        self, owner: str, session: dict[str, Any], seconds: float
    ) -> tuple[str, ClientSecret]:
        """Make a secret that opens any number of sessions until it expires.

        Args:
            owner: label of the key that asks.

        Returns:
            Its value, and what it grants.

        Raises:
            InvalidRequest: the settings are too long.
            Overloaded: too many are valid at this moment.
        """
        size = len(json.dumps(session))
        if size > MAX_SESSION_BYTES:
            raise InvalidRequest(
                f"session: a client secret keeps {MAX_SESSION_BYTES} bytes at most; this one has "
                f"{size}",
                "session",
            )
        self._kept.expire()
        if self._kept.currsize + size + _EACH > MAX_BYTES:
            raise Overloaded("too many client secrets are valid; let some expire")
        value = f"{_PREFIX}{secrets.token_hex(24)}"
        secret = ClientSecret(owner, session, self._clock() + seconds, size)
        self._kept[_digest(value)] = secret
        return value, secret

    def find(self, value: str) -> ClientSecret | None:
        """What a value grants; None: nothing, or no longer."""
        return self._kept.get(_digest(value)) if looks_like_secret(value) else None


def looks_like_secret(value: str) -> bool:
    return _FORM.fullmatch(value) is not None


def _digest(value: str) -> bytes:
    # A lookup by a digest takes a time that tells nothing about other values.
    return hashlib.sha256(value.encode()).digest()
