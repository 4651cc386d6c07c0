"""A session as clients see it."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

from cantata.api.realtime.session_settings import SessionSettings

_OF_ANSWERS = ("create_response", "interrupt_response", "interrupt_on", "idle_timeout_ms")
"""Fields of turn detection that sessions without answers do not have."""
_SELDOM = ("parallel_tool_calls", "truncation", "tracing", "prompt", "reasoning")
"""Fields of sessions that are shown only if they are not the defaults, as clients that do not know
them expect."""


@dataclass(frozen=True, slots=True)
class SessionIdentity:
    """What of a session never changes."""

    id: str
    model: str
    expires_at: int
    """Unix time."""


def build_session_object(
    identity: SessionIdentity, settings: SessionSettings, voice: str | None
) -> dict[str, Any]:
    """Build the session in the names of today's protocol."""
    shown = settings.model_dump()
    for field in _SELDOM:
        if shown[field] == SessionSettings.model_fields[field].default:
            del shown[field]
    transcription = shown["audio"]["input"]["transcription"]
    for field in ("keywords", "languages"):
        # Clients that do not know the fields read no session that has them.
        if transcription is not None and not transcription[field]:
            del transcription[field]
    vad = settings.audio.input.turn_detection
    if vad is not None and vad.interrupt_on == type(vad).model_fields["interrupt_on"].default:
        del shown["audio"]["input"]["turn_detection"]["interrupt_on"]
    if settings.type == "transcription":
        return _build_transcription_object(identity, shown)
    shown["audio"]["output"]["voice"] = voice
    return {
        "object": "realtime.session",
        "id": identity.id,
        "model": identity.model,
        "expires_at": identity.expires_at,
        **shown,
    }


def _build_transcription_object(identity: SessionIdentity, shown: dict[str, Any]) -> dict[str, Any]:
    received = shown["audio"]["input"]
    if received["turn_detection"] is not None:
        kept = {k: v for k, v in received["turn_detection"].items() if k not in _OF_ANSWERS}
        received = {**received, "turn_detection": kept}
    return {
        "object": "realtime.transcription_session",
        "id": identity.id,
        "type": "transcription",
        "expires_at": identity.expires_at,
        "audio": {"input": received},
        "include": shown["include"],
    }
