"""What a session refuses, with the codes that OpenAI's clients know."""

from __future__ import annotations

from cantata.contract.data.errors import PayloadTooLarge, ProtocolViolation


class EmptyCommit(ProtocolViolation):
    """There is no sound to commit."""

    code = "input_audio_buffer_commit_empty"


class BufferFull(PayloadTooLarge):
    """More sound than one item may have waits to be committed."""

    code = "input_audio_buffer_full"


class ResponseActive(ProtocolViolation):
    """One response at a time."""

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
    """The conversation has an item of this id."""

    code = "item_create_duplicate_item_id"


class VoiceFixed(ProtocolViolation):
    """The voice has been heard."""

    code = "cannot_update_voice"


class SessionExpired(ProtocolViolation):
    """A session has a longest duration."""

    code = "session_expired"
