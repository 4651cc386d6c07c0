"""Makes answers, one at a time: the chat's words are spoken while they are being written."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from contextlib import aclosing
from dataclasses import dataclass

from cantata.api.context import ApiContext
from cantata.api.errors import describe
from cantata.api.messages import InputText, SessionConfig
from cantata.api.outbox import Outbox
from cantata.api.realtime.conversation import Conversation, Item
from cantata.api.realtime.ears import Spawn
from cantata.api.realtime.mouth import Mouth
from cantata.api.realtime.refusals import NoResponse, ResponseActive
from cantata.api.realtime.reply import Ending, Reply
from cantata.api.realtime.server_events import FailureObject, ServerEvent
from cantata.api.schemas import ErrorDetail
from cantata.api.text_input import TextInput
from cantata.contract.data.errors import CantataError
from cantata.contract.service import ServedModel
from cantata.realtime.chat import ChatMessage
from cantata.realtime.transcription import TranscriptionFailed

_PIECE = 64
"""Characters that are given to the mouth at once; they hold half as many sentences at most."""

CANCELLED = "cancelled"
TURN_DETECTED, CLIENT_CANCELLED = "turn_detected", "client_cancelled"
"""Why."""


@dataclass(frozen=True, slots=True)
class Stage:
    """Where answers are made: parts of one connection."""

    context: ApiContext
    model: ServedModel
    mouth: Mouth
    conversation: Conversation
    tell: Callable[..., None]
    """Sends events in order, without waiting."""
    refuse: Callable[[CantataError], None]
    """Sends an error."""
    spawn: Spawn
    ended: Callable[[Reply], None]
    """Hears of every answer that is over."""


class Answering:
    """The answer in progress, if there is one."""

    def __init__(self, stage: Stage) -> None:
        self._stage = stage
        self._text = TextInput(stage.context, stage.mouth.utterances)
        self.reply: Reply | None = None

    @property
    def _outbox(self) -> Outbox:
        return self._stage.mouth.outbox

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
            self._stage.mouth.begin(reply.id, reply.item.id, sound, reply.spoken)
        self._stage.tell(*events)
        reply.task = self._stage.spawn(self._run(reply, tuple(items)))

    def check_free(self) -> None:
        """Raises `ResponseActive` while there is an answer in progress."""
        if self.reply is not None:
            raise ResponseActive(
                f"the conversation has an active response, {self.reply.id}; wait for its "
                "response.done, or send response.cancel"
            )

    def cancel(self, reason: str, response_id: str | None = None) -> None:
        """End the answer in progress. Nothing that is made after this leaves.

        Raises:
            NoResponse: there is none, or none of that id.
        """
        reply = self.reply
        if reply is None or response_id not in (None, reply.id):
            # Clients know the error by how it begins.
            raise NoResponse("Cancellation failed: no active response found", "response_id")
        self._end(reply, Ending(CANCELLED, reason))

    def spoken(self) -> None:
        """All sound of the answer has been sent."""
        if self.reply is not None:
            self.reply.all_spoken.set()

    def speech_failed(self, error: ErrorDetail) -> None:
        """The answer cannot be spoken."""
        if self.reply is not None:
            failure = FailureObject(type=error.type, code=error.code, message=error.message)
            self._end(self.reply, Ending("failed", error=failure))

    def stop(self) -> None:
        """The connection is over."""
        if self.reply is not None and self.reply.task is not None:
            self.reply.task.cancel()

    async def _run(self, reply: Reply, items: Sequence[Item]) -> None:
        try:
            with self._stage.context.metrics.conversations.responses.track_inprogress():
                messages = await self._messages(reply, items)
                await self._answer(reply, messages)
        except CantataError as error:
            detail = describe(error).detail
            failure = FailureObject(type=detail.type, code=detail.code, message=detail.message)
            self._end(reply, Ending("failed", error=failure))
        else:
            ending = Ending("incomplete", "max_output_tokens") if reply.cut else Ending("completed")
            self._end(reply, ending)

    async def _messages(self, reply: Reply, items: Sequence[Item]) -> list[ChatMessage]:
        """What the chat gets, once all words are known."""
        waiting = [part.words for item in items for part in item.content if part.words is not None]
        if waiting:
            limit_s = self._stage.context.settings.realtime.answer_timeout_s
            # Not awaited themselves: a cancel of this answer must not end them.
            done, late = await asyncio.wait(waiting, timeout=limit_s)
            if late:
                raise TranscriptionFailed(f"the words were not known within {limit_s:g} s")
            for words in done:
                words.result()
        messages = [message for item in items if (message := item.message()).text]
        if reply.settings.instructions:
            messages.insert(0, ChatMessage("system", reply.settings.instructions))
        reply.asked_characters = sum(len(one.text) for one in messages)
        return messages

    async def _answer(self, reply: Reply, messages: Sequence[ChatMessage]) -> None:
        if reply.speaks:
            await self._text.configure(self._configuration(reply))
        most = reply.settings.max_output_tokens
        limit = None if isinstance(most, str) else most
        chat = self._stage.context.cascade.chat
        async with aclosing(chat.answer(messages, limit)) as deltas:
            async for delta in deltas:
                room = self._stage.context.settings.realtime.max_item_characters - len(reply.text)
                reply.cut = reply.cut or delta.cut or len(delta.text) > room
                if text := delta.text[:room]:
                    await self._outbox.put(reply.delta(text))
                    await self._speak(reply, text)
                if reply.cut:
                    break
        if reply.speaks and reply.text.strip():
            await self._stage.mouth.utterances.wait_for_room(2)
            self._text.commit(reply.id)
            await reply.all_spoken.wait()

    async def _speak(self, reply: Reply, text: str) -> None:
        utterances = self._stage.mouth.utterances
        for start in range(0, len(text) if reply.speaks else 0, _PIECE):
            await utterances.wait_for_room(_PIECE // 2)
            piece = text[start : start + _PIECE]
            self._text.append(InputText(type="input.text", text=piece, context_id=reply.id))

    def _configuration(self, reply: Reply) -> SessionConfig:
        model, output = self._stage.model, reply.settings.audio.output
        return SessionConfig(
            type="session.config",
            model=model.name,
            voice=output.voice,
            speed=output.speed,
            split_granularity="word" if model.capabilities.open_text else "sentence",
            timestamps=True,
        )

    def _end(self, reply: Reply, ending: Ending) -> None:
        if self.reply is not reply:
            return
        stage = self._stage
        self.reply = None
        if ending.status in (CANCELLED, "failed"):
            self._text.clear()
            stage.mouth.utterances.cancel()
        if reply.speaks:
            stage.mouth.hush()
        previous = stage.conversation.before(reply.item.id) if reply.conversation_id else None
        stage.tell(*reply.ended(ending, previous))
        if reply.speaks and ending.status == CANCELLED:
            # Text that was not even made into sound was not heard by anybody.
            content = reply.item.content[0]
            content.text = reply.spoken.heard(reply.text, reply.spoken.sound_s)
        stage.ended(reply)
        if reply.task is not None and reply.task is not asyncio.current_task():
            reply.task.cancel()
