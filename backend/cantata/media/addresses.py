"""Which addresses an untrusted URL may lead to: the public internet only.

Private, loopback, link-local, shared (CGNAT), multicast, reserved, documentation and unspecified
addresses are rejected, as are IPv6 addresses that stand for an IPv4 one, whatever it is.
See IANA's special-purpose address registries (RFC 6890).
"""

from __future__ import annotations

from collections.abc import Iterable
from ipaddress import (
    IPv4Address,
    IPv4Network,
    IPv6Address,
    IPv6Network,
    ip_address,
)

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
