"""What the parts of one session share."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.realtime.conversation import Conversation
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.responder import SessionResponder
from cantata.api.realtime.transcription_feed import Spawn
from cantata.contract.data.errors import CantataError


@dataclass(frozen=True, slots=True)
class SessionContext:
    """One session's objects, and what its connection does for it."""

    api_context: ApiContext
    responder: SessionResponder
    output_audio: OutputAudio
    conversation: Conversation
    emit: Callable[..., None]
    """Sends events in order, without waiting."""
    report_error: Callable[[CantataError], None]
    spawn: Spawn
    on_response_done: Callable[[Reply], None]
