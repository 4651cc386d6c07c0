"""What the server's operator may set; built once by the entry point and passed down."""

from __future__ import annotations

from dataclasses import dataclass


@dataclass(frozen=True, slots=True)
class ServerSettings:
    """Limits and timeouts of one app."""

    max_body_bytes: int = 1 << 20
    """Larger HTTP bodies are refused before they are read."""
    socket_config_timeout_s: float = 10.0
    """Within which a WebSocket client must send a valid `session.config`."""
    socket_idle_timeout_s: float = 30.0
    """Silence from a WebSocket client, while nothing is spoken, after which it is closed."""
    max_message_bytes: int = 256 << 10
    """Largest WebSocket message from a client; longer ones end the connection (close 1009)."""
    max_pending_utterances: int = 64
    """Sentences of one connection that wait to be spoken."""
    outbox_bytes: int = 64 << 10
    """PCM of one connection that waits for a slow socket; then the utterance is held back."""
    stall_timeout_s: float = 120.0
    """An HTTP client that takes nothing for so long counts as gone; its utterance is aborted."""
