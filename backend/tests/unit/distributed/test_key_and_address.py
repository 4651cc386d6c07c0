"""What an operator writes: addresses and keys."""

from __future__ import annotations

from pathlib import Path

import pytest

from cantata.contract.data.errors import ConfigError
from cantata.distributed.address import Address
from cantata.distributed.key import KEY_VARIABLE, NO_KEY, LinkKey, check_key, read_key


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("10.0.0.7:8100", Address("10.0.0.7", 8100)),
        ("gpu-1.lan:0", Address("gpu-1.lan", 0)),
        ("[::1]:8100", Address("::1", 8100)),
    ],
)
def test_an_address_reads_as_it_is_shown(text: str, address: Address) -> None:
    assert Address.parse(text) == address
    assert str(address) == text


@pytest.mark.parametrize(
    "text",
    ["", "host", ":8100", "host:", "host:port", "host:99999", "http://host:1", "a@b:1", "h:1/x"],
)
def test_anything_else_is_no_address(text: str) -> None:
    with pytest.raises(ConfigError, match="HOST:PORT"):
        Address.parse(text)


def test_the_key_is_in_a_file_or_in_the_environment(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv(KEY_VARIABLE, raising=False)
    assert read_key(None) == NO_KEY
    monkeypatch.setenv(KEY_VARIABLE, " sixteen bytes, or more\n")
    assert read_key(None) == LinkKey(b"sixteen bytes, or more")
    file = tmp_path / "key"
    file.write_text("another key with enough bytes\n")
    assert read_key(file) == LinkKey(b"another key with enough bytes")
    file.write_text("short")
    with pytest.raises(ConfigError, match="at least 16"):
        read_key(file)
    with pytest.raises(ConfigError, match="cannot be read"):
        read_key(tmp_path)


@pytest.mark.parametrize("host", ["127.0.0.1", "::1", "localhost"])
def test_this_machine_needs_no_key(host: str) -> None:
    check_key(NO_KEY, Address(host, 1))


@pytest.mark.parametrize("host", ["0.0.0.0", "::", "10.0.0.7", "gpu-1.lan"])
def test_others_need_one(host: str) -> None:
    with pytest.raises(ConfigError, match=KEY_VARIABLE):
        check_key(NO_KEY, Address(host, 1))
    check_key(LinkKey(b"k" * 16), Address(host, 1))
