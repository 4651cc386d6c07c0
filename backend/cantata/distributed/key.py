"""The key by which the ends of a link recognize each other."""

from __future__ import annotations

import os
from dataclasses import dataclass, field
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata.distributed.address import Address
from cantata.distributed.link.tls import LinkTls, read_tls

KEY_VARIABLE = "CANTATA_CLUSTER_KEY"
MIN_KEY_BYTES = 16


@dataclass(frozen=True, slots=True)
class LinkKey:
    """A secret; it is never sent or shown."""

    secret: bytes = field(repr=False)
    """Empty: anyone who reaches the socket may connect."""
    tls: LinkTls | None = None
    """None: what follows the hello is not encrypted."""

    def __bool__(self) -> bool:
        return bool(self.secret)


NO_KEY = LinkKey(b"")


def read_key(file: Path | None) -> LinkKey:
    """The key in a file, or else in the environment; white space around it is ignored. With TLS, if
    the environment names a folder for it.

    Raises:
        ConfigError: a file cannot be read, or the key is too short to be one.
    """
    if file is None:
        where, secret = KEY_VARIABLE, os.environ.get(KEY_VARIABLE, "").strip().encode()
        if not secret:
            return LinkKey(b"", read_tls())
    else:
        try:
            where, secret = str(file), file.read_bytes().strip()
        except OSError as error:
            raise ConfigError(f"{file}: cannot be read ({error.strerror})") from error
    if len(secret) < MIN_KEY_BYTES:
        raise ConfigError(
            f"{where}: a cluster's key has at least {MIN_KEY_BYTES} bytes; "
            "`openssl rand -hex 32` writes one"
        )
    return LinkKey(secret, read_tls())


def check_key(key: LinkKey, address: Address) -> None:
    """Refuse an address that other machines reach without a key. Raises ConfigError: it is one."""
    if not key and not address.is_loopback:
        raise ConfigError(
            f"{address} can be reached by other machines, which could then act as its users: "
            f"a cluster needs a key ({KEY_VARIABLE}, or --cluster-key-file)"
        )
