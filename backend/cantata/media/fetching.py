"""Fetching a file from an untrusted URL without reaching internal addresses.

Each connection resolves its host once, checks every address and connects to a checked one: there
is no second look-up that could answer differently. Redirects are followed by hand, each through
the same checks. Proxies and environment variables are ignored.

Only the public internet may be reached. Private, loopback, link-local, shared (CGNAT), multicast,
reserved, documentation and unspecified addresses are rejected, as are IPv6 addresses that stand for
an IPv4 one, whatever it is. See IANA's special-purpose address registries (RFC 6890).
"""

from __future__ import annotations

import asyncio
import contextlib
import socket
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)
from urllib.parse import SplitResult, urljoin, urlsplit

import httpcore

from cantata.contract.data.errors import InvalidMedia, PayloadTooLarge
from cantata.media.kinds import MediaKind

Network = IPv4Network | IPv6Network

_REFUSED_V4 = tuple(
    IPv4Network(network)
    for network in (
        "192.0.0.0/24",  # protocol assignments
        "192.88.99.0/24",  # 6to4 relays
        "168.63.129.16/32",  # public in form, but a cloud's own host agent
    )
)
_GLOBAL_V6 = IPv6Network("2000::/3")
"""All routed IPv6 addresses. Mapped (::ffff:0:0/96), translated (64:ff9b::/96), unique-local,
link-local and site-local addresses are outside."""
_REFUSED_V6 = tuple(
    IPv6Network(network)
    for network in (
        "2001::/23",  # protocol assignments, among them Teredo
        "2001:db8::/32",  # documentation
        "2002::/16",  # 6to4
        "3fff::/20",  # documentation
    )
)


def may_connect(address: str, allowed: Iterable[Network] = ()) -> bool:
    """Whether an address, as the resolver wrote it, may be connected to.

    Args:
        address: IPv4 or IPv6, in text.
        allowed: networks that may be reached all the same.
    """
    try:
        parsed = ip_address(address)
    except ValueError:
        return False
    if any(parsed in network for network in allowed):
        return True
    return _is_public(parsed)


def _is_public(address: IPv4Address | IPv6Address) -> bool:
    # Python's registries differ by release, so its answer is needed but not enough.
    if not address.is_global or address.is_multicast or address.is_reserved:
        return False
    if isinstance(address, IPv4Address):
        return not any(address in network for network in _REFUSED_V4)
    return (
        address.scope_id is None
        and address in _GLOBAL_V6
        and not any(address in network for network in _REFUSED_V6)
    )


Resolver = Callable[[str, int], Awaitable[list[str]]]
"""(host, port) -> addresses as text."""

_SCHEMES = {"http": 80, "https": 443}
_MAX_REDIRECTS = 3
_MAX_URL_CHARACTERS = 2048
_REDIRECTS = frozenset({301, 302, 303, 307, 308})


@dataclass(frozen=True, slots=True)
class FetchLimits:
    """What a fetch may reach, and how long it may take."""

    connect_s: float = 3.0
    total_s: float = 10.0
    """Seconds from the first connection to the last byte, including redirects."""
    ports: frozenset[int] = frozenset({80, 443})
    allowed_networks: tuple[Network, ...] = ()
    """Networks that may be reached although they are not public."""


async def resolve(host: str, port: int) -> list[str]:
    loop = asyncio.get_running_loop()
    found = await loop.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    return [str(address[0]) for *_, address in found]


class Fetcher:
    """Fetches whole files over HTTP."""

    def __init__(self, limits: FetchLimits, resolver: Resolver = resolve) -> None:
        self._limits = limits
        self._resolver = resolver

    async def fetch(self, url: str, kind: MediaKind, param: str, max_bytes: int) -> bytes:
        """The file behind a URL.

        Args:
            kind: of the file that is expected there, for error messages, as `param`.
            param: the field that the URL came in.
            max_bytes: the largest file that is taken.

        Raises:
            InvalidMedia: the URL is not one that may be fetched, or did not answer with a file.
            PayloadTooLarge: the file is larger than the limit.
        """
        return await _Fetch(self._limits, self._resolver, kind, param, max_bytes).run(url)


@dataclass(frozen=True, slots=True)
class _Fetch:
    limits: FetchLimits
    resolver: Resolver
    kind: MediaKind
    param: str
    max_bytes: int

    async def run(self, url: str) -> bytes:
        try:
            async with asyncio.timeout(self.limits.total_s):
                for _ in range(_MAX_REDIRECTS + 1):
                    found = await self._get(self._check_url(url))
                    if isinstance(found, bytes):
                        return found
                    url = urljoin(url, found.location)
        except TimeoutError:
            raise self._refusal(f"took longer than {self.limits.total_s:g} s") from None
        except (httpcore.TimeoutException, httpcore.NetworkError) as error:
            # The caller must not learn whether a port is closed or silent.
            raise self._refusal("cannot be reached") from error
        except httpcore.ProtocolError as error:
            raise self._refusal("did not answer in HTTP") from error
        raise self._refusal(f"redirects more than {_MAX_REDIRECTS} times")

    async def _get(self, url: SplitResult) -> bytes | _Redirect:
        backend = _CheckedBackend(self.limits, self.resolver, self._refusal)
        timeout = dict.fromkeys(("connect", "read", "write", "pool"), self.limits.connect_s)
        async with (
            httpcore.AsyncConnectionPool(network_backend=backend) as pool,
            pool.stream(
                "GET",
                url.geturl(),
                # Nothing is decompressed, so nothing can expand.
                headers={"accept-encoding": "identity"},
                extensions={"timeout": timeout},
            ) as response,
        ):
            headers = {name.lower(): value for name, value in response.headers}
            if response.status in _REDIRECTS and b"location" in headers:
                return _Redirect(headers[b"location"].decode("latin-1"))
            if response.status != 200:
                raise self._refusal(f"answered with status {response.status}")
            if headers.get(b"content-encoding", b"identity").strip().lower() != b"identity":
                raise self._refusal("answered with a compressed body, which is not supported")
            return await self._read_body(response, headers)

    async def _read_body(self, response: httpcore.Response, headers: dict[bytes, bytes]) -> bytes:
        announced = headers.get(b"content-length", b"0")
        if announced.isdigit() and int(announced) > self.max_bytes:
            raise self._build_too_large_error()
        body = bytearray()
        async for piece in response.aiter_stream():
            body += piece
            if len(body) > self.max_bytes:
                raise self._build_too_large_error()
        return bytes(body)

    def _check_url(self, url: str) -> SplitResult:
        if len(url) > _MAX_URL_CHARACTERS:
            raise self._refusal(f"is longer than {_MAX_URL_CHARACTERS} characters")
        if not url.isascii() or not url.isprintable() or " " in url or "\\" in url:
            raise self._refusal("contains characters that must be percent-encoded")
        try:
            parts = urlsplit(url)
            port = parts.port
        except ValueError:
            raise self._refusal("is not a valid URL") from None
        if parts.scheme not in _SCHEMES:
            raise self._refusal("must begin with http:// or https://")
        if not parts.hostname:
            raise self._refusal("has no host")
        if parts.username is not None or parts.password is not None:
            raise self._refusal("must not contain a user name or password")
        if (_SCHEMES[parts.scheme] if port is None else port) not in self.limits.ports:
            ports = ", ".join(map(str, sorted(self.limits.ports)))
            raise self._refusal(f"has a port that is not allowed; valid: {ports}")
        return parts._replace(fragment="")

    def _refusal(self, reason: str) -> InvalidMedia:
        return self.kind.error(f"the URL in {self.param} {reason}", self.param)

    def _build_too_large_error(self) -> PayloadTooLarge:
        return PayloadTooLarge(
            f"the file behind the URL in {self.param} is larger than {self.max_bytes} bytes",
            self.param,
        )


@dataclass(frozen=True, slots=True)
class _Redirect:
    location: str


class _CheckedBackend(httpcore.AsyncNetworkBackend):
    """Connects to addresses it has checked itself. TLS above it still verifies the host's name."""

    def __init__(
        self,
        limits: FetchLimits,
        resolver: Resolver,
        refusal: Callable[[str], InvalidMedia],
    ) -> None:
        self._limits = limits
        self._resolver = resolver
        self._refusal = refusal
        self._sockets = httpcore.AnyIOBackend()

    async def connect_tcp(
        self,
        host: str,
        port: int,
        timeout: float | None = None,  # noqa: ASYNC109  (httpcore's signature)
        local_address: str | None = None,
        socket_options: Iterable[httpcore.SOCKET_OPTION] | None = None,
    ) -> httpcore.AsyncNetworkStream:
        try:
            addresses = await self._resolver(host, port)
        except (OSError, UnicodeError):
            addresses = []
        if not addresses:
            raise self._refusal("has a host that cannot be found")
        allowed = self._limits.allowed_networks
        if not all(may_connect(address, allowed) for address in addresses):
            raise self._refusal("leads to an address that is not public")
        for address in addresses[:-1]:
            with contextlib.suppress(httpcore.NetworkError, httpcore.TimeoutException):
                return await self._sockets.connect_tcp(address, port, timeout)
        return await self._sockets.connect_tcp(addresses[-1], port, timeout)
