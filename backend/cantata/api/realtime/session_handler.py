"""A conversation in progress: the user's turns, the items, and when an answer is due."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Sequence
from contextlib import suppress
from typing import Any

from pydantic import ValidationError

from cantata.api.errors import describe, explain_validation
from cantata.api.realtime.active_responses import (
    CLIENT_CANCELLED,
    TURN_DETECTED,
    ActiveResponse,
    SessionContext,
)
from cantata.api.realtime.barge_in import BargeIn
from cantata.api.realtime.client_events import (
    ItemCreate,
    ItemTruncate,
    ResponseScope,
    SentItem,
)
from cantata.api.realtime.conversation import CallOutput, Content, Item, PlayoutTimes
from cantata.api.realtime.input_audio import HeardItem, InputAudioBuffer, SpeechBegan
from cantata.api.realtime.model_choice import check_same
from cantata.api.realtime.refusals import NoResponses, NoSuchItem, VoiceFixed
from cantata.api.realtime.reply import Reply
from cantata.api.realtime.sent_items import build_item
from cantata.api.realtime.server_events import (
    CommittedEvent,
    FailureObject,
    IdleEvent,
    ItemDeleted,
    ItemEvent,
    ItemTruncated,
    SpeechStartedEvent,
    SpeechStoppedEvent,
    TranscriptionCompleted,
    TranscriptionDelta,
    TranscriptionFailedEvent,
    new_id,
)
from cantata.api.realtime.session_settings import SemanticVad, ServerVad, SessionSettings, updated
from cantata.api.realtime.transcription_choice import check_transcription
from cantata.api.transcription.answers import DurationUsage, LogprobObject
from cantata.contract.data.errors import CantataError, InvalidRequest, NotInstalled
from cantata.contract.data.transcripts import TokenLogprob
from cantata.speech_input.agreed_words import WordDelta
from cantata.speech_input.chat import SILENT
from cantata.speech_input.echo import EchoFilter


class Dialogue:
    """A session without its socket.

    Args:
        session: parts of the connection.
        settings: with which it begins.
    """

    def __init__(self, session: SessionContext, settings: SessionSettings) -> None:
        self._session = session
        self._limits = session.context.settings.realtime
        self.id = new_id("conv")
        self.settings = settings
        self.voice = session.responder.default_voice
        self.answering = ActiveResponse(session)
        self._barge_in = BargeIn(self)
        self._input_audio = InputAudioBuffer(
            session.context,
            self.settings,
            session.spawn,
            self._barge_in.on_words_heard,
            self._barge_in,
            EchoFilter(session.output_audio.sent, time.monotonic),
            keeps_sound=session.responder.hears,
        )
        self._idle: asyncio.Task[None] | None = None
        """Waits for the user to say something after an answer."""

    @property
    def _answers(self) -> bool:
        return self.settings.type == "realtime"

    @property
    def _vad(self) -> ServerVad | SemanticVad | None:
        return self.settings.audio.input.turn_detection

    @property
    def _idle_ms(self) -> int | None:
        """Silence of the user in ms, after which another answer starts; None: never."""
        return self._vad.idle_timeout_ms if isinstance(self._vad, ServerVad) else None

    async def update(self, sent: dict[str, Any]) -> None:
        """Change settings.

        Raises:
            InvalidRequest: one is not valid, or needs what is not installed; nothing has changed.
        """
        new = updated(self.settings, sent)
        if new.type == "realtime":
            check_same(self._session.context, self._session.responder.name, sent.get("model"))
        check_transcription(self._session.context, new, "session")
        await self._check_semantic(new, "session")
        self._session.responder.check(new, "session")
        self.voice = await self._resolve_voice(new, "session.audio.output.voice")
        if new.type == "transcription" and self.answering.reply is not None:
            self.answering.cancel(CLIENT_CANCELLED)
        self.settings = new
        self._input_audio.configure(new)
        self._barge_in.holds = self._answers and self._vad is not None and self._vad.holds
        if self._idle_ms is None:
            self._stop_waiting()

    async def hear(self, sound: bytes) -> None:
        """Take sound of the user. With turn detection, act on the turns in it.

        Raises:
            PayloadTooLarge: too much waits to be committed.
        """
        async for event in self._input_audio.hear(sound):
            if isinstance(event, SpeechBegan):
                self._barge_in.began(event)
            else:
                self._barge_in.ended(event)
        self._barge_in.review()

    def on_speech_began(self, event: SpeechBegan) -> None:
        """Implements `TurnListener`: tells of it, and stops the answer."""
        self._stop_waiting()
        self._session.emit(SpeechStartedEvent(audio_start_ms=event.at_ms, item_id=event.item_id))
        if self._vad is not None and self._vad.interrupt_response:
            self.cut(TURN_DETECTED)

    def on_speech_ended(self, event: HeardItem) -> None:
        """Implements `TurnListener`: makes an item of what was said, and answers it."""
        stopped = SpeechStoppedEvent(audio_end_ms=event.at_ms, item_id=event.hearing.item_id)
        self._session.emit(stopped)
        self._commit(event)
        if self._answers and self._vad is not None and self._vad.create_response:
            self._respond_by_itself()

    def on_words_heard(self, item_id: str, delta: WordDelta) -> None:
        """Implements `TurnListener`."""
        logprobs = self._show_logprobs(delta.logprobs)
        event = TranscriptionDelta(item_id=item_id, delta=delta.text, logprobs=logprobs)
        self._session.emit(event)

    def hold_answer(self) -> None:
        """Implements `TurnListener`."""
        self._session.output_audio.hold()

    def resume_answer(self) -> None:
        """Implements `TurnListener`."""
        self._session.output_audio.resume()

    def is_answer_heard(self) -> bool:
        """Implements `TurnListener`; in a pause of one in progress, too."""
        reply = self.answering.reply
        is_begun = reply is not None and reply.spoken.sound_s > 0
        return is_begun or self._session.output_audio.is_playing

    def commit(self) -> None:
        """Make an item of the sound heard so far.

        Raises:
            EmptyCommit: there is too little of it.
        """
        item = self._input_audio.commit()
        self._barge_in.accept()
        self._commit(item)

    def clear(self) -> None:
        """Drop the sound heard since the last item."""
        self._input_audio.clear()

    def create(self, event: ItemCreate) -> None:
        """Insert a client's item.

        Raises:
            NoResponses: the session only transcribes.
            InvalidRequest: it is not valid, or there is no place for it.
        """
        self._check_answers()
        item = build_item(event.item, self._input_audio.whole, self._limits)
        called = item.call
        if isinstance(called, CallOutput) and not self._session.conversation.calls(called.call_id):
            raise InvalidRequest(
                f"item.call_id: the conversation has no call {called.call_id!r}", "item.call_id"
            )
        self._add(item, event.previous_item_id)

    def delete(self, item_id: str) -> None:
        """Remove an item; raises `NoSuchItem`."""
        self._session.conversation.remove(item_id)
        self._session.emit(ItemDeleted(item_id=item_id))

    def truncate(self, event: ItemTruncate) -> None:
        """Forget the part of an answer that the listener has not heard, both sound and words. An
        answer that is still being spoken is cancelled.

        Raises:
            NoSuchItem: there is no such item.
            InvalidRequest: it was not spoken, or is shorter.
        """
        item = self._session.conversation.get(event.item_id)
        spoken = item.spoken
        if spoken is None or event.content_index != 0:
            raise InvalidRequest(
                f"item {item.id} has no spoken answer at content_index {event.content_index}; "
                "only answers with sound can be truncated",
                "item_id" if spoken is None else "content_index",
            )
        until_s = event.audio_end_ms / 1000
        if event.audio_end_ms > round(spoken.sound_s * 1000):
            raise InvalidRequest(
                f"item {item.id} has {round(spoken.sound_s * 1000)} ms of sound; it cannot be "
                f"truncated at {event.audio_end_ms} ms",
                "audio_end_ms",
            )
        if item.status == "in_progress":
            # Whoever stopped playing it does not wait for its rest.
            self.answering.cancel(CLIENT_CANCELLED)
        elif self.answering.reply is None:
            self._session.output_audio.stopped_playing()
        self._forget_unheard(item, spoken, until_s)

    def cut(self, reason: str = CLIENT_CANCELLED) -> None:
        """Stop answering and, where the server plays the answer, stop that at once and forget what
        was not heard.

        Args:
            reason: of the end of the answer in progress, if there is one.
        """
        heard = self._session.output_audio.cut()
        if self.answering.reply is not None:
            self.answering.cancel(reason)
        for answer in heard:
            with suppress(NoSuchItem):  # not kept, or deleted since
                item = self._session.conversation.get(answer.item_id)
                if item.spoken is not None:
                    seconds = min(answer.seconds, item.spoken.sound_s)
                    self._forget_unheard(item, item.spoken, seconds)

    async def respond(self, sent: dict[str, Any]) -> None:
        """Answer, with settings for this answer only.

        Raises:
            NoResponses: the session only transcribes.
            ResponseActive: there is an answer in progress.
            InvalidRequest: a setting is not valid.
        """
        self._check_answers()
        scope = _read_scope(sent)
        settings = updated(self.settings, sent, "response")
        if not self._is_aside(settings, scope):
            self.answering.check_free()
        await self._check_semantic(settings, "response")
        self._session.responder.check(settings, "response")
        voice = await self._resolve_voice(settings, "response.audio.output.voice")
        self._respond(settings, voice, scope)

    def stop(self) -> None:
        """End what runs: the connection is over."""
        self._stop_waiting()
        self._barge_in.stop()
        self._input_audio.stop()
        self.answering.stop()

    def answered(self, reply: Reply) -> None:
        """Called when an answer is over: the user's turn begins, for at most `idle_timeout_ms`."""
        is_spoken_to = reply.speaks or reply.conversation_id is not None
        if self._idle_ms is not None and reply.awaits_user and is_spoken_to:
            self._idle = self._session.spawn(self._wait_for_user(self._idle_ms / 1000))

    def _check_answers(self) -> None:
        if not self._answers:
            raise NoResponses

    def _is_aside(self, settings: SessionSettings, scope: ResponseScope) -> bool:
        """Whether an answer is written beside the conversation, and so beside any other answer. A
        model that hears gives one at a time."""
        written = scope.conversation == "none" and not settings.speaks
        return written and not self._session.responder.hears

    def _respond(self, settings: SessionSettings, voice: str | None, scope: ResponseScope) -> None:
        is_aside = self._is_aside(settings, scope)
        if not is_aside:
            self.answering.check_free()
        conversation = self._session.conversation
        items = conversation.items
        if scope.input is not None:
            items = tuple(self._find_referred_item(sent) for sent in scope.input)
        kept = scope.conversation == "auto"
        keep = conversation.add if kept else None
        reply = Reply(settings, voice, self.id if kept else None, keep, scope.metadata)
        if is_aside:
            self.answering.start_aside(reply, items, reply.started())
            return
        self._stop_waiting()
        self.answering.start(reply, items, reply.started())
        self._shorten()

    def _respond_by_itself(self) -> None:
        """Answer unprompted. An error is reported to the client and ends nothing."""
        try:
            self._respond(self.settings, self.voice, ResponseScope())
        except CantataError as error:
            self._session.report_error(error)

    def _find_referred_item(self, sent: SentItem) -> Item:
        if sent.type == "item_reference":
            return self._session.conversation.get(sent.id or "")
        return build_item(sent, self._input_audio.whole, self._limits)

    def _forget_unheard(self, item: Item, spoken: PlayoutTimes, until_s: float) -> None:
        item.content[0].text = spoken.heard_part(item.content[0].text, until_s)
        spoken.sound_s = until_s
        end_ms = round(until_s * 1000)
        self._session.emit(ItemTruncated(item_id=item.id, content_index=0, audio_end_ms=end_ms))

    def _commit(self, received: HeardItem, meaning: str | None = None) -> None:
        hearing = received.hearing
        content = Content("input_audio", words=hearing.words, sound=hearing.sound, meaning=meaning)
        item = Item(hearing.item_id, "user", [content])
        self._session.emit(
            CommittedEvent(item_id=item.id, previous_item_id=self._session.conversation.last_id)
        )
        self._add(item)
        if self.settings.audio.input.transcription is not None and hearing.words is not None:
            self._session.spawn(self._emit_transcript(received, hearing.words))

    def _add(self, item: Item, after: str | None = None) -> None:
        previous = self._session.conversation.add(item, after)
        shown = item.shown()
        self._session.emit(
            ItemEvent(type="conversation.item.added", item=shown, previous_item_id=previous),
            ItemEvent(type="conversation.item.done", item=shown, previous_item_id=previous),
        )
        self._shorten()

    def _shorten(self) -> None:
        for item_id in self._session.conversation.shorten():
            self._session.emit(ItemDeleted(item_id=item_id))

    async def _emit_transcript(self, received: HeardItem, words: asyncio.Future[str]) -> None:
        item_id = received.hearing.item_id
        await asyncio.wait([words])
        if words.cancelled():
            return
        error = words.exception()
        if isinstance(error, CantataError):
            detail = describe(error).detail
            failure = FailureObject(type=detail.type, code=detail.code, message=detail.message)
            self._session.emit(TranscriptionFailedEvent(item_id=item_id, error=failure))
            return
        transcript = received.hearing.transcript
        self._session.emit(
            TranscriptionCompleted(
                item_id=item_id,
                transcript=words.result(),
                logprobs=self._show_logprobs(transcript.logprobs if transcript else ()),
                usage=DurationUsage(seconds=round(received.seconds, 3)),
            )
        )

    def _show_logprobs(self, tokens: Sequence[TokenLogprob]) -> list[LogprobObject] | None:
        return [LogprobObject.of(token) for token in tokens] if self.settings.include else None

    async def _wait_for_user(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        heard_until = max(loop.time(), self._session.output_audio.utterances.heard_until)
        await asyncio.sleep(heard_until - loop.time())
        start_ms = self._input_audio.ms
        await asyncio.sleep(seconds)
        self._idle = None
        silence = self._input_audio.silence()
        self._session.emit(
            IdleEvent(
                audio_start_ms=start_ms,
                audio_end_ms=self._input_audio.ms,
                item_id=silence.hearing.item_id,
            )
        )
        self._commit(silence, SILENT)
        self._respond_by_itself()

    def _stop_waiting(self) -> None:
        if self._idle is not None:
            self._idle.cancel()
            self._idle = None

    async def _check_semantic(self, settings: SessionSettings, param: str) -> None:
        """Load what semantic turn detection needs, if these settings ask for it."""
        if not isinstance(settings.audio.input.turn_detection, SemanticVad):
            return
        try:
            await self._session.context.cascade.prepare_semantic()
        except NotInstalled as error:
            raise InvalidRequest(
                f"{error.message}; valid without it: server_vad, null",
                f"{param}.audio.input.turn_detection.type",
            ) from None

    async def _resolve_voice(self, settings: SessionSettings, param: str) -> str | None:
        """The voice that these settings select, as clients see it."""
        asked = settings.audio.output.voice
        try:
            chosen = await self._session.responder.get_voice(asked)
        except InvalidRequest as error:
            raise type(error)(error.message, param) from None
        if chosen != self.voice and self._session.output_audio.has_sent:
            raise VoiceFixed(
                f"the voice {self.voice} has already been used and cannot be changed", param
            )
        return chosen


def _read_scope(sent: dict[str, Any]) -> ResponseScope:
    try:
        return ResponseScope.model_validate(sent)
    except ValidationError as error:
        refusal = explain_validation(error.errors(include_url=False))
        raise InvalidRequest(refusal.message, f"response.{refusal.param}") from None
