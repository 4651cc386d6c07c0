"""API keys: the server's, and the one that a request sends."""

from __future__ import annotations

import hashlib
import hmac
import re
from collections.abc import Iterable, Iterator
from ipaddress import IPv6Address, ip_address
from pathlib import Path

from starlette.datastructures import Headers
from starlette.types import Scope

from cantata.contract.data.errors import ConfigError

MIN_KEY_CHARACTERS = 16
SUBPROTOCOL = "cantata"
KEY_SUBPROTOCOL = "cantata-api-key."
_OPENAI_SUBPROTOCOL = "realtime"
_OPENAI_KEY_SUBPROTOCOL = "openai-insecure-api-key."

_USABLE_KEY = re.compile(r"[A-Za-z0-9._~-]+")
"""Valid in every header, subprotocols included."""
_SCHEMES = ("bearer", "token")
"""Schemes of the header `Authorization`; Deepgram's clients send `Token`. Their browsers offer
`token` and then the key as WebSocket subprotocols."""
_KEY_HEADERS = ("x-api-key", "xi-api-key")


class ApiKeys:
    """A server's keys. Only digests are kept, so that no key can leak from here."""

    def __init__(self, keys: Iterable[str] = ()) -> None:
        """Raises ConfigError: a key is too short or invalid in a header."""
        self._digests = tuple(_digest(_check(key)) for key in dict.fromkeys(keys))

    def __len__(self) -> int:
        return len(self._digests)

    def __repr__(self) -> str:
        return f"ApiKeys({len(self)})"

    def match(self, key: str) -> str | None:
        """A label of the key, which identifies it without revealing it; None if it is unknown.

        The time does not depend on which key matches, if any.
        """
        shown = _digest(key)
        found = None
        for digest in self._digests:
            if hmac.compare_digest(digest, shown):
                found = digest.hex()[:8]
        return found


def read_keys(listed: str, file: Path | None) -> ApiKeys:
    """Keys from a list with commas and from a file with a key per line (# begins a comment). Raises
    ConfigError: the file cannot be read or holds none, or a key is not usable."""
    keys = [key.strip() for key in listed.split(",") if key.strip()]
    if file is not None:
        try:
            lines = file.read_text(encoding="utf-8").splitlines()
        except (OSError, UnicodeDecodeError) as error:
            raise ConfigError(f"{file}: cannot read API keys from this file") from error
        found = [line.strip() for line in lines if line.strip() and not line.startswith("#")]
        if not found:
            raise ConfigError(f"{file}: contains no API key; write one per line")
        keys += found
    return ApiKeys(keys)


def iterate_shown_keys(scope: Scope) -> Iterator[str]:
    """Everything in a request's headers that may be a key."""
    headers = Headers(scope=scope)
    scheme, _, credentials = headers.get("authorization", "").partition(" ")
    if scheme.lower() in _SCHEMES:
        yield credentials.strip()
    yield from (headers[name] for name in _KEY_HEADERS if name in headers)
    # A browser's WebSocket can set no header but this one.
    offered = scope.get("subprotocols", [])
    for before, protocol in zip(["", *offered], offered, strict=False):
        for prefix in (KEY_SUBPROTOCOL, _OPENAI_KEY_SUBPROTOCOL):
            if protocol.startswith(prefix):
                yield protocol.removeprefix(prefix)
        if before.lower() in _SCHEMES:
            yield protocol


def choose_subprotocol(scope: Scope) -> str | None:
    """The subprotocol to accept among those that a WebSocket client offers: never a key.

    A browser that offers some and gets none accepted breaks the connection.
    """
    offered: list[str] = scope.get("subprotocols", [])
    known = (SUBPROTOCOL, _OPENAI_SUBPROTOCOL, *_SCHEMES)
    return next((p for p in offered if p.lower() in known), None)


def _check(key: str) -> str:
    # The message must not hold the key: it may be logged.
    if len(key) < MIN_KEY_CHARACTERS:
        raise ConfigError(f"an API key needs at least {MIN_KEY_CHARACTERS} characters")
    if not _USABLE_KEY.fullmatch(key):
        raise ConfigError("an API key may contain only letters, digits, '-', '.', '_' and '~'")
    return key


def _digest(key: str) -> bytes:
    return hashlib.sha256(key.encode("utf-8", "surrogatepass")).digest()


def is_local_program(scope: Scope) -> bool:
    """Whether a request comes from this machine, and not from a page: browsers send an `Origin`
    with everything that does more than read.

    Behind a reverse proxy the client is the one that the proxy forwards for (`x-forwarded-for`).
    """
    client = scope.get("client")
    host = client[0] if client else ""
    return is_loopback(host) and "origin" not in Headers(scope=scope)


def is_loopback(host: str) -> bool:
    """Whether a client's address is this machine's own."""
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
