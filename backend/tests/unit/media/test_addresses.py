"""Which addresses the server may fetch from."""

from __future__ import annotations

from ipaddress import ip_network

import pytest

from cantata.media.fetching import may_connect

REFUSED = [
    "0.0.0.0",
    "0.1.2.3",
    "10.0.0.1",
    "10.255.255.255",
    "100.64.0.1",
    "100.100.100.200",
    "127.0.0.1",
    "127.1.2.3",
    "168.63.129.16",
    "169.254.169.254",
    "172.16.0.1",
    "172.31.255.255",
    "192.0.0.8",
    "192.0.2.1",
    "192.88.99.1",
    "192.168.1.1",
    "198.18.0.1",
    "198.51.100.1",
    "203.0.113.1",
    "224.0.0.1",
    "239.1.1.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "::7f00:1",
    "::ffff:127.0.0.1",
    "::ffff:8.8.8.8",
    "::ffff:169.254.169.254",
    "64:ff9b::7f00:1",
    "64:ff9b::808:808",
    "64:ff9b:1::1",
    "100::1",
    "2001::1",
    "2001:0:7f00:1::",
    "2001:db8::1",
    "2002:7f00:1::",
    "2002:a9fe:a9fe::",
    "3fff::1",
    "5f00::1",
    "fc00::1",
    "fd00:ec2::254",
    "fe80::1",
    "fe80::1%eth0",
    "fec0::1",
    "ff02::1",
    "2606:4700::1%eth0",
    "localhost",
    "0x7f000001",
    "2130706433",
    "127.1",
]


@pytest.mark.parametrize("address", REFUSED)
def test_local_addresses_are_rejected(address: str) -> None:
    assert not may_connect(address)


@pytest.mark.parametrize(
    "address", ["8.8.8.8", "93.184.216.34", "1.1.1.1", "2606:4700:4700::1111", "2a00:1450::1"]
)
def test_public(address: str) -> None:
    assert may_connect(address)


def test_networks_can_be_allowed() -> None:
    allowed = (ip_network("127.0.0.1/32"), ip_network("::1/128"))
    assert may_connect("127.0.0.1", allowed)
    assert may_connect("::1", allowed)
    assert not may_connect("127.0.0.2", allowed)
    assert not may_connect("10.0.0.1", allowed)
