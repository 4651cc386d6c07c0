"""The operator's command-line options -> settings, with safe defaults."""

from __future__ import annotations

import os
from collections.abc import Sequence
from dataclasses import dataclass, field
from ipaddress import ip_address
from pathlib import Path
from urllib.parse import urlsplit

import platformdirs

from cantata.api.access.api_keys import ApiKeys, read_keys
from cantata.api.settings import (
    ANY_ORIGIN,
    ConnectionSettings,
    JobSettings,
    Provenance,
    ReferenceSettings,
    SecuritySettings,
    ServerSettings,
)
from cantata.contract.data.errors import ConfigError
from cantata.jobs.job import JobLimits
from cantata.media.fetching import FetchLimits
from cantata.media.signing import SigningFiles
from cantata.references.consent import ConsentMode
from cantata.speech_input.settings import CallSettings, Endpoint, RealtimeSettings
from cantata.watermark.pattern import read_key

_DAY_S = 86_400.0
KEYS_VARIABLE = "CANTATA_API_KEYS"
CHAT_KEY_VARIABLE = "CANTATA_CHAT_API_KEY"
TRANSCRIPTION_KEY_VARIABLE = "CANTATA_TRANSCRIPTION_API_KEY"


@dataclass(frozen=True, slots=True)
class EndpointOptions:
    """A server with OpenAI's HTTP protocol, as far as it was named."""

    url: str | None = None
    model: str | None = None
    key: str | None = None

    def with_defaults(self, url: str | None, model: str | None) -> EndpointOptions:
        """These options, with `url` and `model` where they have none."""
        return EndpointOptions(self.url or url, self.model or model, self.key)


def read_chat_endpoint(url: str | None, model: str | None) -> EndpointOptions:
    """The endpoint that answers, with its key from the environment."""
    return EndpointOptions(url, model, os.environ.get(CHAT_KEY_VARIABLE))


def read_stt_endpoint(url: str | None, model: str | None) -> EndpointOptions:
    """The endpoint that transcribes, with its key from the environment."""
    return EndpointOptions(url, model, os.environ.get(TRANSCRIPTION_KEY_VARIABLE))


@dataclass(frozen=True, slots=True)
class ServerOptions:
    """Options of `cantata serve` that control access, and what else a server uses."""

    api_keys: str = ""
    """Separated by commas; from the environment."""
    api_key_file: Path | None = None
    no_auth: bool = False
    private_lists: bool = False
    allow_origins: tuple[str, ...] = ()
    allow_hosts: tuple[str, ...] = ()
    aliases: tuple[str, ...] = ()
    """Each `NAME=MODEL`."""
    max_concurrent_per_key: int | None = None
    voices_dir: Path | None = None
    """None: a folder in the user's data folder."""
    voices_url: str | None = None
    """URL of a store that several servers share, instead of a folder."""
    jobs_dir: Path | None = None
    """None: a folder beside that of uploaded voices, or in the user's data folder."""
    jobs_per_key: int = JobLimits().per_owner
    jobs_expire_days: float = JobLimits().expires_s / _DAY_S
    consent: ConsentMode = "none"
    provenance: Provenance = "tags"
    signing_certificate: Path | None = None
    signing_key: Path | None = None
    timestamp_url: str | None = None
    watermark: bool = False
    watermark_key: Path | None = None
    """File with the mark's key; None: the key that everybody knows."""
    lexicons: tuple[str, ...] = ()
    """Each `NAME` or `VOICE=NAME`."""
    allow_ref_urls: bool = False
    ref_url_ports: tuple[int, ...] = ()
    request_log: Path | None = None
    otlp_traces_endpoint: str | None = None
    drain_timeout_s: float = ConnectionSettings().drain_timeout_s
    chat: EndpointOptions = field(default_factory=EndpointOptions)
    """The endpoint that answers in spoken conversations."""
    transcription: EndpointOptions = field(default_factory=EndpointOptions)
    """The endpoint that transcribes in spoken conversations."""
    webrtc_ports: str | None = None
    """`FIRST-LAST`."""
    webrtc_address: str | None = None


def build_settings(options: ServerOptions, address: str) -> ServerSettings:
    """The settings of a server that listens on this address.

    Raises:
        ConfigError: options that exclude each other or are not valid, or a server that
            others could reach without a key although `no_auth` is not set.
    """
    fetch = FetchLimits()
    fetch = FetchLimits(ports=fetch.ports | set(options.ref_url_ports))
    return ServerSettings(
        connections=ConnectionSettings(drain_timeout_s=options.drain_timeout_s),
        security=SecuritySettings(
            api_keys=_read_keys(options, address),
            public_lists=not options.private_lists,
            allowed_origins=tuple(map(_check_origin, options.allow_origins)),
            allowed_hosts=tuple(map(_check_host, options.allow_hosts)),
            max_concurrent_per_key=options.max_concurrent_per_key,
        ),
        model_aliases=_parse_aliases(options.aliases),
        references=_build_reference_settings(options),
        jobs=_build_job_settings(options),
        provenance=options.provenance,
        signing=_find_signing_files(options),
        request_log=options.request_log,
        otlp_traces_endpoint=_check_collector(options.otlp_traces_endpoint),
        watermark_key=_read_watermark_key(options),
        lexicons=tuple(_parse_lexicon(one) for one in options.lexicons),
        fetch=fetch if options.allow_ref_urls else None,
        realtime=RealtimeSettings(
            chat=_build_endpoint(options.chat, "chat"),
            transcription=_build_endpoint(options.transcription, "transcription"),
            calls=_build_call_settings(options),
        ),
    )


def _read_watermark_key(options: ServerOptions) -> bytes | None:
    """The key of the mark in samples; None: there is no mark. Raises ConfigError: there is a key
    for no mark, or it cannot be read."""
    if options.watermark_key is not None and not options.watermark:
        raise ConfigError("--watermark-key needs --watermark")
    return read_key(options.watermark_key) if options.watermark else None


def _find_signing_files(options: ServerOptions) -> SigningFiles | None:
    """Who signs files. Raises ConfigError: one of the options is there without the others."""
    certificate, key, url = (
        options.signing_certificate,
        options.signing_key,
        options.timestamp_url,
    )
    if options.provenance != "signed":
        if certificate or key or url:
            raise ConfigError(
                "--signing-certificate, --signing-key and --timestamp-url need --provenance signed"
            )
        return None
    if certificate is None or key is None:
        raise ConfigError(
            "--provenance signed needs --signing-certificate and --signing-key; "
            '"cantata certificate FOLDER" makes both for a trial'
        )
    if url is not None and not url.startswith(("http://", "https://")):
        raise ConfigError(f"--timestamp-url {url!r}: write http://... or https://...")
    return SigningFiles(certificate, key, url)


def _parse_aliases(written: Sequence[str]) -> dict[str, str]:
    """More names of models. Raises ConfigError: one is not written `NAME=MODEL`, or a name means
    two models."""
    aliases: dict[str, str] = {}
    for alias in written:
        name, equals, model = (part.strip() for part in alias.partition("="))
        if not (name and equals and model):
            raise ConfigError(f"--alias {alias!r}: write NAME=MODEL, such as gpt-4o=qwen3-omni")
        if aliases.setdefault(name, model) != model:
            raise ConfigError(f"--alias {alias!r}: {name!r} already means {aliases[name]!r}")
    return aliases


def _build_endpoint(options: EndpointOptions, name: str) -> Endpoint | None:
    if options.url is None and options.model is None:
        return None
    if options.url is None or options.model is None:
        raise ConfigError(
            f"--{name}-url and --{name}-model (or {name}_url and {name}_model in a "
            "deployment's realtime) belong together"
        )
    parts = urlsplit(options.url)
    if parts.scheme not in ("http", "https") or not parts.netloc:
        raise ConfigError(
            f"--{name}-url {options.url!r}: write the base URL of an OpenAI-compatible API, such "
            "as http://localhost:11434/v1"
        )
    return Endpoint(options.url.rstrip("/"), options.model, options.key)


def _build_call_settings(options: ServerOptions) -> CallSettings:
    """Where media of calls arrive. Raises ConfigError: the ports or the address are not written as
    such."""
    ports = None
    if options.webrtc_ports is not None:
        first, _, last = options.webrtc_ports.partition("-")
        numbers = [int(one) for one in (first, last) if one.isascii() and one.isdecimal()]
        if len(numbers) != 2 or not 1024 <= numbers[0] <= numbers[1] <= 65535:
            raise ConfigError(
                f"--webrtc-ports {options.webrtc_ports!r}: write FIRST-LAST, from 1024 to 65535, "
                "such as 50000-50199"
            )
        ports = (numbers[0], numbers[1])
    address = options.webrtc_address
    try:
        known = address is None or ip_address(address).version == 4
    except ValueError:
        known = False
    if not known:
        raise ConfigError(f"--webrtc-address {address!r}: write an IPv4 address")
    return CallSettings(ports, address)


def _build_reference_settings(options: ServerOptions) -> ReferenceSettings:
    if options.voices_url is None:
        folder = _choose_voices_dir(options)
        beside = folder.parent if options.voices_dir is None else folder
        return ReferenceSettings(
            voices_dir=folder, lexicons_dir=beside / "lexicons", consent=options.consent
        )
    if options.voices_dir is not None:
        raise ConfigError("--voices-dir and --voices-url exclude each other")
    return ReferenceSettings(voices_url=options.voices_url, consent=options.consent)


def _build_job_settings(options: ServerOptions) -> JobSettings:
    folder, voices = options.jobs_dir, options.voices_dir
    if folder is not None:
        _check_writable("--jobs-dir", folder)
    elif voices is not None:
        folder = voices / "jobs"
    else:
        folder = platformdirs.user_data_path("cantata") / "jobs"
    expires_s = options.jobs_expire_days * _DAY_S
    return JobSettings(folder, JobLimits(options.jobs_per_key, expires_s=expires_s))


def _parse_lexicon(written: str) -> tuple[str, str]:
    """Voice, empty for all, and lexicon of an option."""
    voice, equals, name = written.partition("=")
    return (voice.strip(), name.strip()) if equals else ("", written.strip())


def _choose_voices_dir(options: ServerOptions) -> Path:
    """Where uploaded voices go; a folder given by name must be writable."""
    named = options.voices_dir
    if named is None:
        return platformdirs.user_data_path("cantata") / "voices"
    _check_writable("--voices-dir", named)
    return named


def _check_writable(option: str, named: Path) -> None:
    existing = next(path for path in (named, *named.absolute().parents) if path.exists())
    if not existing.is_dir() or not os.access(existing, os.W_OK | os.X_OK):
        raise ConfigError(f"{option} {named}: {existing} cannot be written to")


def _read_keys(options: ServerOptions, address: str) -> ApiKeys:
    keys = read_keys(options.api_keys, options.api_key_file)
    if options.no_auth and keys:
        raise ConfigError(
            f"--no-auth and API keys ({KEYS_VARIABLE}, --api-key-file) exclude each other"
        )
    if not keys and not options.no_auth and not ip_address(address).is_loopback:
        raise ConfigError(
            f"listening on {address} needs API keys ({KEYS_VARIABLE}, comma-separated, or "
            "--api-key-file), since every machine that reaches it could speak and upload voices; "
            "--no-auth allows it without keys"
        )
    return keys


def _check_collector(url: str | None) -> str | None:
    if url is not None and not urlsplit(url).netloc:
        raise ConfigError(
            f"--otlp-traces-endpoint {url!r}: write an address such as "
            "http://localhost:4318/v1/traces"
        )
    return url


def _check_origin(origin: str) -> str:
    parts = urlsplit(origin)
    plain = parts.scheme in ("http", "https") and origin == f"{parts.scheme}://{parts.netloc}"
    if origin != ANY_ORIGIN and not (plain and parts.netloc):
        raise ConfigError(
            f"--allow-origin {origin!r}: write it as https://example.org, without a path, or '*'"
        )
    return origin


def _check_host(host: str) -> str:
    if host != ANY_ORIGIN and urlsplit(f"//{host}").netloc != urlsplit(f"//{host}").hostname:
        raise ConfigError(
            f"--allow-host {host!r}: write a name such as cantata.lan, without a port, or '*'"
        )
    return host
