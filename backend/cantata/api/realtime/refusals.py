"""Errors of a session, with the codes that OpenAI's clients know."""

from __future__ import annotations

from cantata.contract.data.errors import PayloadTooLarge, ProtocolViolation


class EmptyCommit(ProtocolViolation):
    """There is no sound to commit."""

    code = "input_audio_buffer_commit_empty"


class BufferFull(PayloadTooLarge):
    """More sound waits for a commit than an item may have."""

    code = "input_audio_buffer_full"


class ResponseActive(ProtocolViolation):
    """A response is already in progress."""

    code = "conversation_already_has_active_response"


class NoResponse(ProtocolViolation):
    """There is nothing to cancel."""

    code = "response_cancel_not_active"


class NoSuchItem(ProtocolViolation):
    """The conversation has no item of this id."""

    code = "item_not_found"

    def __init__(self, item_id: str, param: str = "item_id") -> None:
        super().__init__(f"the conversation has no item {item_id[:64]!r}", param)


class ItemExists(ProtocolViolation):
    """The conversation already has an item of this id."""

    code = "item_create_duplicate_item_id"


class VoiceFixed(ProtocolViolation):
    """The voice has already been used, so it is fixed."""

    code = "cannot_update_voice"


class SessionExpired(ProtocolViolation):
    """The session has reached its longest duration."""

    code = "session_expired"


class NoResponses(ProtocolViolation):
    """The session only transcribes."""

    code = "transcription_session"

    def __init__(self) -> None:
        super().__init__(
            "a transcription session only transcribes: it takes sound, and gives no responses. "
            "Connect with ?model= for a conversation"
        )
