"""Operator settings of spoken conversations."""

from __future__ import annotations

from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True)
class Endpoint:
    """A server that speaks OpenAI's HTTP protocol."""

    url: str
    """Its base address, such as `http://localhost:11434/v1`."""
    model: str
    key: str | None = field(default=None, repr=False)


@dataclass(frozen=True, slots=True)
class RealtimeSettings:
    """What answers, what hears, and the limits of a session."""

    chat: Endpoint | None = None
    """None: the rules of `responder`, which need no network."""
    transcription: Endpoint | None = None
    """None: pocketsphinx, on this machine."""
    idle_timeout_s: float = 600.0
    """Without a message from the client, after everything that was said has been played."""
    max_session_s: float = 3600.0
    """After which a session is closed."""
    max_sound_s: float = 360.0
    """Of one input item, and of sound that waits to become one."""
    max_append_bytes: int = 15 << 20
    """Of the sound in one message, decoded."""
    max_message_bytes: int = 24 << 20
    """Of one message; longer ones end the connection."""
    max_items: int = 512
    """Of a conversation; the oldest one goes when another comes."""
    max_item_characters: int = 16_384
    """Of the text of one item; an answer is cut there."""
    max_ahead_s: float = 5.0
    """Of sound that is sent before it can be played: what lies beyond would be made in vain if the
    user interrupted."""
    answer_timeout_s: float = 60.0
    """Silence from the chat endpoint, or from the transcription, after which a response fails."""
