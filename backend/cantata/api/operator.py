"""What the operator said on the command line -> settings, safe where nothing was said."""

from __future__ import annotations

from dataclasses import dataclass
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from cantata.api.api_keys import ApiKeys, read_keys
from cantata.api.security import ANY_ORIGIN
from cantata.api.settings import ReferenceSettings, SecuritySettings, ServerSettings
from cantata.contract.errors import ConfigError
from cantata.references.fetching import FetchLimits

KEYS_VARIABLE = "CANTATA_API_KEYS"


@dataclass(frozen=True, slots=True)
class OperatorOptions:
    """Options of `cantata serve` that concern who may do what."""

    api_keys: str = ""
    """Separated by commas; from the environment."""
    api_key_file: Path | None = None
    no_auth: bool = False
    private_lists: bool = False
    allow_origins: tuple[str, ...] = ()
    max_concurrent_per_key: int | None = None
    voices_dir: Path | None = None
    """None: the platform's folder for a user's data."""
    allow_ref_urls: bool = False
    ref_url_ports: tuple[int, ...] = ()


def settings_for(options: OperatorOptions, address: str) -> ServerSettings:
    """The settings of a server that listens on this address.

    Raises:
        ConfigError: options that exclude each other or are not valid, or a server that others
            could reach without a key although nobody said so.
    """
    fetch = FetchLimits()
    fetch = FetchLimits(ports=fetch.ports | set(options.ref_url_ports))
    return ServerSettings(
        security=SecuritySettings(
            api_keys=_keys(options, address),
            public_lists=not options.private_lists,
            allowed_origins=tuple(map(_check_origin, options.allow_origins)),
            max_concurrent_per_key=options.max_concurrent_per_key,
        ),
        references=ReferenceSettings(
            voices_dir=options.voices_dir or platformdirs.user_data_path("cantata") / "voices",
            fetch=fetch if options.allow_ref_urls else None,
        ),
    )


def _keys(options: OperatorOptions, address: str) -> ApiKeys:
    keys = read_keys(options.api_keys, options.api_key_file)
    if options.no_auth and keys:
        raise ConfigError(
            f"--no-auth and API keys ({KEYS_VARIABLE}, --api-key-file) exclude each other"
        )
    if not keys and not options.no_auth and not ip_address(address).is_loopback:
        raise ConfigError(
            f"on {address}, everybody who reaches this machine could speak and upload voices; give "
            f"API keys ({KEYS_VARIABLE}, separated by commas, or --api-key-file), or say --no-auth"
        )
    return keys


def _check_origin(origin: str) -> str:
    parts = urlsplit(origin)
    plain = parts.scheme in ("http", "https") and origin == f"{parts.scheme}://{parts.netloc}"
    if origin != ANY_ORIGIN and not (plain and parts.netloc):
        raise ConfigError(
            f"--allow-origin {origin!r}: write it as https://example.org, without a path, or '*'"
        )
    return origin
