"""Where a request comes from."""

from __future__ import annotations

from ipaddress import IPv6Address, ip_address

from starlette.datastructures import Headers
from starlette.types import Scope


def is_local_program(scope: Scope) -> bool:
    """Whether a request comes from this machine, and not from a page: browsers send an `Origin`
    with everything that does more than read.

    Behind a reverse proxy the client is the one that the proxy forwards for (`x-forwarded-for`).
    """
    client = scope.get("client")
    host = client[0] if client else ""
    return _is_loopback(host) and "origin" not in Headers(scope=scope)


def _is_loopback(host: str) -> bool:
    try:
        address = ip_address(host)
    except ValueError:
        return False
    if isinstance(address, IPv6Address) and address.ipv4_mapped:
        return address.ipv4_mapped.is_loopback
    return address.is_loopback
