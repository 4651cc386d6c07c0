"""Operator settings of spoken conversations."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server with an OpenAI-compatible HTTP API."""

    url: str
    """Base URL, such as `http://localhost:11434/v1`."""
    model: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class CallSettings:
    """Sessions over WebRTC."""

    ports: tuple[int, int] | None = None
    """First and last UDP port of their media; None: any free ones."""
    address: str | None = None
    """The address at which clients reach those ports, where it is none of this machine's: behind a
    NAT, or in a container."""
    max_calls: int = 256
    connect_s: float = 30.0
    """Time for a client to connect after its offer was answered."""


@dataclass(frozen=True, slots=True)
class ResumingSettings:
    """Sessions over WebSockets whose clients may come back after their connection was lost."""

    kept_s: float = 30.0
    """How long a session waits for its client."""
    max_bytes: int = 2 << 20
    """Of a session's events most that were sent and are kept, and as much of those that wait to be
    sent: half a minute of sound each."""
    max_sessions: int = 256


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """The endpoints of spoken conversations, and the limits of a session."""

    chat: Endpoint | None = None
    """None: the rules in `responder`, which need no network."""
    transcription: Endpoint | None = None
    """None: the server's own models that transcribe."""
    idle_timeout_s: float = 600.0
    """A session is closed after this long without a message from the client, counted from the end
    of the sound that it plays."""
    max_session_s: float = 3600.0
    """A session is closed after this long."""
    max_sound_s: float = 360.0
    """Longest sound of one input item, and of all sound that waits to become one."""
    max_append_bytes: int = 15 << 20
    """Most sound in one message, decoded."""
    max_message_bytes: int = 24 << 20
    """Largest message; longer ones end the connection."""
    max_items: int = 512
    """Most items of a conversation; a new one replaces the oldest."""
    max_item_characters: int = 16_384
    """Most characters of one item's text; an answer is cut there."""
    max_ahead_s: float = 5.0
    """Most sound sent before it can be played: anything beyond would be made in vain if the user
    interrupted."""
    answer_timeout_s: float = 60.0
    """A response fails after this much silence from the chat endpoint or the recognizer."""
    calls: CallSettings = CallSettings()
    resuming: ResumingSettings = ResumingSettings()
