"""Starts, ends and cancels the answers of one session: one at a time in its conversation, and
written ones beside it."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.realtime.conversation import Conversation, Item
from cantata.api.realtime.output_audio import OutputAudio
from cantata.api.realtime.refusals import NoResponse, ResponseActive
from cantata.api.realtime.reply import Reply, ReplyEnding
from cantata.api.realtime.responder import SessionResponder
from cantata.api.realtime.server_events import FailureObject, ServerEvent
from cantata.api.realtime.transcription_feed import Spawn
from cantata.api.schemas import ErrorDetail
from cantata.contract.data.errors import CantataError

CANCELLED = "cancelled"
TURN_DETECTED, CLIENT_CANCELLED = "turn_detected", "client_cancelled"
"""Why."""
MAX_ASIDE = 4
"""Most answers outside the conversation that are written at the same time."""


@dataclass(frozen=True, slots=True)
class SessionContext:
    """What answers need of their connection."""

    context: ApiContext
    responder: SessionResponder
    output_audio: OutputAudio
    conversation: Conversation
    emit: Callable[..., None]
    """Sends events in order, without waiting."""
    report_error: Callable[[CantataError], None]
    """Sends an error."""
    spawn: Spawn
    ended: Callable[[Reply], None]
    """Called with every answer that is over."""


class ActiveResponse:
    """The answer in progress, if there is one, and those that are written beside it."""

    def __init__(self, session: SessionContext) -> None:
        self._session = session
        self.reply: Reply | None = None
        self._aside: dict[str, Reply] = {}
        """By id. Nothing that the user says ends them, and they have no sound."""
        self._stopped = set[Reply]()
        """Whose tasks have been cancelled because the connection is over."""

    @property
    def is_busy(self) -> bool:
        """Whether any answer is in progress."""
        return self.reply is not None or bool(self._aside)

    def start(self, reply: Reply, items: Sequence[Item], events: Sequence[ServerEvent]) -> None:
        """Begin an answer.

        Args:
            reply: without content.
            items: what it follows from.
            events: tell of its beginning.

        Raises:
            ResponseActive: there is one in progress.
        """
        self.check_free()
        self.reply = reply
        if reply.speaks:
            sound = reply.settings.audio.output.format
            self._session.output_audio.begin(reply.id, reply.item.id, sound, reply.spoken)
        self._session.emit(*events)
        reply.task = self._session.spawn(self._run(reply, tuple(items)))

    def start_aside(
        self, reply: Reply, items: Sequence[Item], events: Sequence[ServerEvent]
    ) -> None:
        """Begin an answer that is written outside the conversation, whatever else is in progress.

        Args:
            reply: as of `start`, and the others.
            items: what it follows from.
            events: tell of its beginning.

        Raises:
            ResponseActive: there are too many.
        """
        if len(self._aside) >= MAX_ASIDE:
            raise ResponseActive(
                f"{MAX_ASIDE} responses outside the conversation are being written; wait for the "
                "response.done of one, or send response.cancel with its response_id"
            )
        self._aside[reply.id] = reply
        self._session.emit(*events)
        reply.task = self._session.spawn(self._run(reply, tuple(items)))

    def check_free(self) -> None:
        """Raises `ResponseActive` while there is an answer in progress."""
        if self.reply is not None:
            raise ResponseActive(
                f"the conversation has an active response, {self.reply.id}; wait for its "
                "response.done, or send response.cancel"
            )

    def cancel(self, reason: str, response_id: str | None = None) -> None:
        """End the answer in progress. None of its events are sent after this.

        Args:
            reason: why.
            response_id: of one that is written beside it, or its own.

        Raises:
            NoResponse: there is none, or none of that id.
        """
        reply = self._aside.get(response_id or "", self.reply)
        if reply is None or response_id not in (None, reply.id):
            # Clients know the error by how it begins.
            raise NoResponse("Cancellation failed: no active response found", "response_id")
        self._end(reply, ReplyEnding(CANCELLED, reason))

    def spoken(self) -> None:
        """Called when all sound of the answer has been sent."""
        if self.reply is not None:
            self.reply.all_spoken.set()

    def on_speech_failed(self, error: ErrorDetail) -> None:
        """Called when the answer cannot be spoken."""
        if self.reply is not None:
            failure = FailureObject(type=error.type, code=error.code, message=error.message)
            self._end(self.reply, ReplyEnding("failed", error=failure))

    def stop(self) -> None:
        """End what runs: the connection is over."""
        active = () if self.reply is None else (self.reply,)
        for reply in (*active, *self._aside.values()):
            # Once: a second cancel would break into the abort of the first. WHY not by the task's
            # `cancelling()`: libraries cancel it for themselves, such as anyio when it has
            # connected.
            if reply.task is not None and reply not in self._stopped:
                self._stopped.add(reply)
                reply.task.cancel()

    async def _run(self, reply: Reply, items: Sequence[Item]) -> None:
        try:
            with self._session.context.metrics.conversations.responses.track_inprogress():
                await self._session.responder.answer(reply, items)
        except CantataError as error:
            detail = describe(error).detail
            failure = FailureObject(type=detail.type, code=detail.code, message=detail.message)
            self._end(reply, ReplyEnding("failed", error=failure))
        else:
            ending = (
                ReplyEnding("incomplete", "max_output_tokens")
                if reply.cut
                else ReplyEnding("completed")
            )
            self._end(reply, ending)

    def _end(self, reply: Reply, ending: ReplyEnding) -> None:
        session = self._session
        if self._aside.pop(reply.id, None) is not None:
            session.emit(*reply.ended(ending, None))
        elif self.reply is reply:
            self._end_active(reply, ending)
        else:
            return
        session.ended(reply)
        if reply.task is not None and reply.task is not asyncio.current_task():
            reply.task.cancel()

    def _end_active(self, reply: Reply, ending: ReplyEnding) -> None:
        session = self._session
        self.reply = None
        if ending.status in (CANCELLED, "failed"):
            session.responder.stop_audio()
            session.output_audio.sent.cut()
        if reply.speaks:
            session.output_audio.stop_audio()
        previous = session.conversation.before(reply.item.id) if reply.conversation_id else None
        session.emit(*reply.ended(ending, previous))
        if reply.speaks and ending.status == CANCELLED:
            # Text that was not even made into sound was not heard by anybody.
            content = reply.item.content[0]
            content.text = reply.spoken.heard_part(reply.text, reply.spoken.sound_s)
