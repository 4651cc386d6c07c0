"""Starts, ends and cancels the responses of one session: one at a time in its conversation, and
written ones beside it, which OpenAI calls out of band."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

from cantata.api.errors import describe
from cantata.api.realtime.conversation import Item
from cantata.api.realtime.refusals import NoResponse, ResponseActive
from cantata.api.realtime.reply import Reply, ReplyEnding
from cantata.api.realtime.server_events import FailureObject, ServerEvent
from cantata.api.realtime.session_context import SessionContext
from cantata.api.schemas import ErrorDetail
from cantata.contract.data.errors import CantataError

CANCELLED = "cancelled"
TURN_DETECTED, CLIENT_CANCELLED = "turn_detected", "client_cancelled"
"""The reasons of a cancelled response, as `status_details` tells them."""
MAX_OUT_OF_BAND = 4
"""Most answers outside the conversation that are written at the same time."""


class ActiveResponses:
    """The response in progress, if there is one, and those out of band."""

    def __init__(self, context: SessionContext) -> None:
        self._context = context
        self.reply: Reply | None = None
        self._out_of_band: dict[str, Reply] = {}
        """By id. Nothing that the user says ends them, and they have no sound."""
        self._stopped = set[Reply]()
        """Whose tasks have been cancelled because the connection is over."""

    @property
    def is_busy(self) -> bool:
        return self.reply is not None or bool(self._out_of_band)

    def start(self, reply: Reply, items: Sequence[Item], events: Sequence[ServerEvent]) -> None:
        """Begin an answer.

        Args:
            reply: without content.

        Raises:
            ResponseActive: there is one in progress.
        """
        self.check_free()
        self.reply = reply
        if reply.speaks:
            sound = reply.settings.audio.output.format
            self._context.output_audio.begin(reply.id, reply.item.id, sound, reply.playout, self)
        self._context.emit(*events)
        reply.task = self._context.spawn(self._run(reply, tuple(items)))

    def start_out_of_band(
        self, reply: Reply, items: Sequence[Item], events: Sequence[ServerEvent]
    ) -> None:
        """Begin an answer that is written outside the conversation, whatever else is in progress.

        Args:
            reply: as of `start`, and the others.

        Raises:
            ResponseActive: there are too many.
        """
        if len(self._out_of_band) >= MAX_OUT_OF_BAND:
            raise ResponseActive(
                f"{MAX_OUT_OF_BAND} responses outside the conversation are being written; wait for "
                "the response.done of one, or send response.cancel with its response_id"
            )
        self._out_of_band[reply.id] = reply
        self._context.emit(*events)
        reply.task = self._context.spawn(self._run(reply, tuple(items)))

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
            response_id: of one that is written beside it, or its own.

        Raises:
            NoResponse: there is none, or none of that id.
        """
        reply = self._out_of_band.get(response_id or "", self.reply)
        if reply is None or response_id not in (None, reply.id):
            # Clients know the error by how it begins.
            raise NoResponse("Cancellation failed: no active response found", "response_id")
        self._end(reply, ReplyEnding(CANCELLED, reason))

    def on_audio_done(self) -> None:
        """Implements `OutputAudioListener`."""
        if self.reply is not None:
            self.reply.audio_done.set()

    def on_speech_failed(self, error: ErrorDetail) -> None:
        """Implements `OutputAudioListener`: the response fails."""
        if self.reply is not None:
            failure = FailureObject(type=error.type, code=error.code, message=error.message)
            self._end(self.reply, ReplyEnding("failed", error=failure))

    def stop(self) -> None:
        """End what runs: the connection is over."""
        active = () if self.reply is None else (self.reply,)
        for reply in (*active, *self._out_of_band.values()):
            # Once: a second cancel would break into the abort of the first. WHY not by the task's
            # `cancelling()`: libraries cancel it for themselves, such as anyio when it has
            # connected.
            if reply.task is not None and reply not in self._stopped:
                self._stopped.add(reply)
                reply.task.cancel()

    async def _run(self, reply: Reply, items: Sequence[Item]) -> None:
        try:
            with self._context.api_context.metrics.conversations.responses.track_inprogress():
                await self._context.responder.answer(reply, items)
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
        context = self._context
        if self._out_of_band.pop(reply.id, None) is not None:
            context.emit(*reply.build_end_events(ending, None))
        elif self.reply is reply:
            self._end_active(reply, ending)
        else:
            return
        context.on_response_done(reply)
        if reply.task is not None and reply.task is not asyncio.current_task():
            reply.task.cancel()

    def _end_active(self, reply: Reply, ending: ReplyEnding) -> None:
        context = self._context
        self.reply = None
        if ending.status in (CANCELLED, "failed"):
            context.responder.stop_audio()
            context.output_audio.sent.cut()
        if reply.speaks:
            context.output_audio.stop_audio()
        previous = (
            context.conversation.find_previous_id(reply.item.id) if reply.conversation_id else None
        )
        context.emit(*reply.build_end_events(ending, previous))
        if reply.speaks and ending.status == CANCELLED:
            # Text that was not even made into sound was not heard by anybody.
            content = reply.item.content[0]
            content.text = reply.playout.truncate_text(reply.text, reply.playout.sound_s)
