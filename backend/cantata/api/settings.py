"""Operator settings; built once by the entry point and passed down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Literal

from cantata.api.access.api_keys import ApiKeys
from cantata.jobs.job import JobLimits
from cantata.media.fetching import FetchLimits
from cantata.media.request_media import MediaLimits
from cantata.media.signing import SigningFiles
from cantata.references.consent import ConsentMode
from cantata.references.stored import StoreLimits
from cantata.speech_input.settings import RealtimeSettings

ANY_ORIGIN = "*"
Provenance = Literal["off", "tags", "signed"]


@dataclass(frozen=True, slots=True)
class SecuritySettings:
    """Access and limits; docs/security.md."""

    api_keys: ApiKeys = field(default_factory=ApiKeys)
    """Empty: no key is needed."""
    public_lists: bool = True
    """Models and the models' own voices are listed without a key."""
    allowed_origins: tuple[str, ...] = ()
    """Sites, besides its own, whose pages may use this server; `*` for all."""
    allowed_hosts: tuple[str, ...] = ()
    """Names that requests may be addressed to without keys, beside this machine's; `*` for all."""
    max_concurrent_per_key: int | None = None
    """HTTP requests and WebSockets that one key may have open; None: no limit of its own."""


@dataclass(frozen=True, slots=True)
class ReferenceSettings:
    """Recordings of speakers to follow."""

    max_bytes: int = 10 << 20
    """Largest file of one recording."""
    voices_dir: Path | None = None
    """Where uploaded voices are kept; None: none are taken."""
    voices_url: str | None = None
    """Store of uploaded voices that several servers share; replaces `voices_dir`."""
    consent: ConsentMode = "none"
    """What an upload or a recording needs beside the client's word."""
    lexicons_dir: Path | None = None
    """Where lexicons are kept; None: none are taken."""
    store: StoreLimits = field(default_factory=StoreLimits)


@dataclass(frozen=True, slots=True)
class JobSettings:
    """Books and other texts that are spoken in the background."""

    folder: Path | None = None
    """Where they are kept; None: none are taken."""
    limits: JobLimits = field(default_factory=JobLimits)


@dataclass(frozen=True, slots=True)
class ConnectionSettings:
    """Time limits for clients, and for draining when the server stops."""

    head_timeout_s: float = 10.0
    """Limit for the head of a request or for a Wyoming event, from its first byte; on a new
    connection, from its start."""
    body_timeout_s: float = 20.0
    """Limit for a request's body, plus one second for each `body_bytes_per_s`."""
    body_bytes_per_s: int = 1024
    unanswered_s: float = 14.0
    """A client whose machine acknowledges nothing for this long counts as gone."""
    drain_timeout_s: float = 60.0
    """How long running requests may take to end once the server is stopping."""
    max_connections: int | None = None
    """None: as many as the limit on open files allows."""


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits and timeouts of one app."""

    max_body_bytes: int = 1 << 20
    """Larger HTTP bodies are rejected before they are read. A recording in one comes on top."""
    max_recording_bytes: int = 512 << 20
    """Largest file that is transcribed; it is kept on disk meanwhile."""
    socket_config_timeout_s: float = 10.0
    """A WebSocket client must send a valid `session.config` within this time."""
    socket_idle_timeout_s: float = 30.0
    """A WebSocket is closed after this long without a message while nothing is spoken."""
    max_message_bytes: int = 256 << 10
    """Largest WebSocket message from a client; longer ones end the connection (close 1009)."""
    max_pending_utterances: int = 64
    """Most sentences of one connection that may wait to be spoken."""
    outbox_bytes: int = 64 << 10
    """Most PCM of one connection that may wait for a slow socket; beyond it, the utterance is held
    back."""
    stall_timeout_s: float = 120.0
    """A client that reads nothing for this long is disconnected; its utterance is aborted."""
    connections: ConnectionSettings = ConnectionSettings()
    security: SecuritySettings = SecuritySettings()
    provenance: Provenance = "tags"
    """What files that are made here say of their origin."""
    signing: SigningFiles | None = None
    """Who signs files; None: nobody."""
    request_log: Path | None = None
    """File for a line of JSON for each request, `-` standard output; None: none is written."""
    otlp_traces_endpoint: str | None = None
    """Address of the collector of traces; None: none are made."""
    watermark_key: bytes | None = None
    """Of the mark in the samples of speech; None: there is none."""
    lexicons: tuple[tuple[str, str], ...] = ()
    """Voice and lexicon, by names: read with every text of the voice; an empty name means all."""
    model_aliases: Mapping[str, str] = field(default_factory=dict)
    references: ReferenceSettings = ReferenceSettings()
    jobs: JobSettings = field(default_factory=JobSettings)
    realtime: RealtimeSettings = field(default_factory=RealtimeSettings)
    media: MediaLimits = field(default_factory=MediaLimits)
    """Sound, pictures and videos in messages."""
    fetch: FetchLimits | None = None
    """None: the server does not fetch URLs."""
