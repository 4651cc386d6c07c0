"""One session: the user's turns, the conversation's items, and when a response is due.

Who calls whom, from a client's event to the server's events:

1. `RealtimeConnection.handle_event` (connection.py) dispatches the event to a handler method.
2. `SessionHandler.append_audio` passes the sound on to `InputAudioBuffer.append` (input_audio.py).
3. The buffer finds turns, and gives each a `TranscriptionFeed` (transcription_feed.py), which
   transcribes it while it is spoken. It yields `TurnStarted` and `TurnEnded`.
4. `BargeIn.on_turn_started` and `on_turn_ended` (barge_in.py) hold back speech over a response.
5. `SessionHandler.on_speech_started` interrupts the response; `on_speech_stopped` makes an item.
6. `ActiveResponses.start` (active_responses.py) runs a response; so does `response.create`.
7. `SessionResponder.answer` (cascade_responder.py, model_responder.py) makes its text and sound.
8. `OutputAudio` (output_audio.py) queues both, and writes them as server events (server_events.py).
9. `ActiveResponses.on_audio_done` lets the responder return; `on_response_done` ends it here.
"""

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
    ActiveResponses,
)
from cantata.api.realtime.barge_in import BargeIn
from cantata.api.realtime.client_events import (
    ItemCreate,
    ItemTruncate,
    ResponseScope,
    SentItem,
)
from cantata.api.realtime.conversation import CallOutput, Content, Item, PlayoutTimes
from cantata.api.realtime.input_audio import InputAudioBuffer, TurnEnded, TurnStarted
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
from cantata.api.realtime.session_context import SessionContext
from cantata.api.realtime.session_settings import (
    SemanticVad,
    ServerVad,
    SessionSettings,
    apply_update,
)
from cantata.api.realtime.transcription_choice import check_transcription
from cantata.api.transcription.answers import DurationUsage, LogprobObject
from cantata.contract.data.errors import CantataError, InvalidRequest, NotInstalled
from cantata.contract.data.transcripts import TokenLogprob
from cantata.speech_input.agreed_words import WordDelta
from cantata.speech_input.chat import SILENT
from cantata.speech_input.echo import EchoFilter


class SessionHandler:
    """A session without its socket: handles what clients ask for, and the turns that are detected.
    `settings`: with which it begins."""

    def __init__(self, context: SessionContext, settings: SessionSettings) -> None:
        self._context = context
        self._limits = context.api_context.settings.realtime
        self.id = new_id("conv")
        self.settings = settings
        self.voice = context.responder.default_voice
        self.responses = ActiveResponses(context)
        self._barge_in = BargeIn(self)
        self._input_audio = InputAudioBuffer(
            context.api_context,
            self.settings,
            context.spawn,
            self._barge_in.on_transcript_delta,
            self._barge_in,
            EchoFilter(context.output_audio.sent, time.monotonic),
            keeps_sound=context.responder.takes_audio,
        )
        self._idle_timer: asyncio.Task[None] | None = None
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
        """Change settings. Raises InvalidRequest: one is not valid, or needs what is not installed;
        nothing has changed."""
        new = apply_update(self.settings, sent)
        if new.type == "realtime":
            check_same(self._context.api_context, self._context.responder.name, sent.get("model"))
        check_transcription(self._context.api_context, new, "session")
        await self._check_semantic(new, "session")
        self._context.responder.check(new, "session")
        self.voice = await self._resolve_voice(new, "session.audio.output.voice")
        if new.type == "transcription" and self.responses.reply is not None:
            self.responses.cancel(CLIENT_CANCELLED)
        self.settings = new
        self._input_audio.configure(new)
        self._barge_in.holds = self._answers and self._vad is not None and self._vad.holds
        if self._idle_ms is None:
            self._stop_idle_timer()

    async def append_audio(self, sound: bytes) -> None:
        """Take sound of the user. With turn detection, act on the turns in it. Raises
        PayloadTooLarge: too much waits to be committed."""
        async for event in self._input_audio.append(sound):
            if isinstance(event, TurnStarted):
                self._barge_in.on_turn_started(event)
            else:
                self._barge_in.on_turn_ended(event)
        self._barge_in.review()

    def on_speech_started(self, event: TurnStarted) -> None:
        """Implements `TurnListener`: emits `speech_started`, and interrupts the response."""
        self._stop_idle_timer()
        self._context.emit(SpeechStartedEvent(audio_start_ms=event.at_ms, item_id=event.item_id))
        if self._vad is not None and self._vad.interrupt_response:
            self.interrupt(TURN_DETECTED)

    def on_speech_stopped(self, event: TurnEnded) -> None:
        """Implements `TurnListener`: makes an item of what was said, and responds to it."""
        stopped = SpeechStoppedEvent(audio_end_ms=event.at_ms, item_id=event.feed.item_id)
        self._context.emit(stopped)
        self._commit_turn(event)
        if self._answers and self._vad is not None and self._vad.create_response:
            self._respond_unprompted()

    def on_transcript_delta(self, item_id: str, delta: WordDelta) -> None:
        """Implements `TurnListener`."""
        logprobs = self._build_logprobs(delta.logprobs)
        event = TranscriptionDelta(item_id=item_id, delta=delta.text, logprobs=logprobs)
        self._context.emit(event)

    def pause_answer(self) -> None:
        """Implements `TurnListener`."""
        self._context.output_audio.pause()

    def resume_answer(self) -> None:
        """Implements `TurnListener`."""
        self._context.output_audio.resume()

    def is_answer_playing(self) -> bool:
        """Implements `TurnListener`."""
        reply = self.responses.reply
        is_begun = reply is not None and reply.playout.sound_s > 0
        return is_begun or self._context.output_audio.is_playing

    def commit_audio(self) -> None:
        """Make an item of the sound heard so far. Raises EmptyCommit: there is too little of it."""
        item = self._input_audio.commit()
        self._barge_in.accept()
        self._commit_turn(item)

    def clear_audio(self) -> None:
        """Drop the sound heard since the last item."""
        self._input_audio.clear()

    def create_item(self, event: ItemCreate) -> None:
        """Insert a client's item.

        Raises:
            NoResponses: the session only transcribes.
            InvalidRequest: it is not valid, or there is no place for it.
        """
        self._check_answers()
        item = build_item(event.item, self._input_audio.feed_whole, self._limits)
        called = item.call
        if isinstance(called, CallOutput) and not self._context.conversation.has_call(
            called.call_id
        ):
            raise InvalidRequest(
                f"item.call_id: the conversation has no call {called.call_id!r}", "item.call_id"
            )
        self._add_item(item, event.previous_item_id)

    def delete_item(self, item_id: str) -> None:
        """Remove an item; raises `NoSuchItem`."""
        self._context.conversation.remove(item_id)
        self._context.emit(ItemDeleted(item_id=item_id))

    def truncate_item(self, event: ItemTruncate) -> None:
        """Forget the part of an answer that the listener has not heard, both sound and words. An
        answer that is still being spoken is cancelled.

        Raises:
            NoSuchItem: there is no such item.
            InvalidRequest: it was not spoken, or is shorter.
        """
        item = self._context.conversation.get(event.item_id)
        playout = item.playout
        if playout is None or event.content_index != 0:
            raise InvalidRequest(
                f"item {item.id} has no spoken answer at content_index {event.content_index}; "
                "only answers with sound can be truncated",
                "item_id" if playout is None else "content_index",
            )
        until_s = event.audio_end_ms / 1000
        if event.audio_end_ms > round(playout.sound_s * 1000):
            raise InvalidRequest(
                f"item {item.id} has {round(playout.sound_s * 1000)} ms of sound; it cannot be "
                f"truncated at {event.audio_end_ms} ms",
                "audio_end_ms",
            )
        if item.status == "in_progress":
            # Whoever stopped playing it does not wait for its rest.
            self.responses.cancel(CLIENT_CANCELLED)
        elif self.responses.reply is None:
            self._context.output_audio.stopped_playing()
        self._truncate(item, playout, until_s)

    def interrupt(self, reason: str = CLIENT_CANCELLED) -> None:
        """Stop answering and, where the server plays the answer, stop that at once and forget what
        was not heard. `reason`: of the end of the answer in progress, if there is one."""
        heard = self._context.output_audio.clear()
        if self.responses.reply is not None:
            self.responses.cancel(reason)
        for answer in heard:
            with suppress(NoSuchItem):  # not kept, or deleted since
                item = self._context.conversation.get(answer.item_id)
                if item.playout is not None:
                    seconds = min(answer.seconds, item.playout.sound_s)
                    self._truncate(item, item.playout, seconds)

    async def create_response(self, sent: dict[str, Any]) -> None:
        """Answer, with settings for this answer only.

        Raises:
            NoResponses: the session only transcribes.
            ResponseActive: there is an answer in progress.
            InvalidRequest: a setting is not valid.
        """
        self._check_answers()
        scope = _read_scope(sent)
        settings = apply_update(self.settings, sent, "response")
        if not self._is_out_of_band(settings, scope):
            self.responses.check_free()
        await self._check_semantic(settings, "response")
        self._context.responder.check(settings, "response")
        voice = await self._resolve_voice(settings, "response.audio.output.voice")
        self._start_response(settings, voice, scope)

    def stop(self) -> None:
        """End what runs: the connection is over."""
        self._stop_idle_timer()
        self._barge_in.stop()
        self._input_audio.stop()
        self.responses.stop()

    def on_response_done(self, reply: Reply) -> None:
        """Called when an answer is over: the user's turn begins, for at most `idle_timeout_ms`."""
        is_spoken_to = reply.speaks or reply.conversation_id is not None
        if self._idle_ms is not None and reply.awaits_user and is_spoken_to:
            self._idle_timer = self._context.spawn(self._run_idle_timer(self._idle_ms / 1000))

    def _check_answers(self) -> None:
        if not self._answers:
            raise NoResponses

    def _is_out_of_band(self, settings: SessionSettings, scope: ResponseScope) -> bool:
        """Whether an answer is written beside the conversation, and so beside any other answer. A
        model that hears gives one at a time."""
        written = scope.conversation == "none" and not settings.speaks
        return written and not self._context.responder.takes_audio

    def _start_response(
        self, settings: SessionSettings, voice: str | None, scope: ResponseScope
    ) -> None:
        is_out_of_band = self._is_out_of_band(settings, scope)
        if not is_out_of_band:
            self.responses.check_free()
        conversation = self._context.conversation
        items = conversation.items
        if scope.input is not None:
            items = tuple(self._find_referred_item(sent) for sent in scope.input)
        kept = scope.conversation == "auto"
        keep = conversation.add if kept else None
        reply = Reply(settings, voice, self.id if kept else None, keep, scope.metadata)
        if is_out_of_band:
            self.responses.start_out_of_band(reply, items, reply.build_start_events())
            return
        self._stop_idle_timer()
        self.responses.start(reply, items, reply.build_start_events())
        self._shorten()

    def _respond_unprompted(self) -> None:
        """Answer unprompted. An error is reported to the client and ends nothing."""
        try:
            self._start_response(self.settings, self.voice, ResponseScope())
        except CantataError as error:
            self._context.report_error(error)

    def _find_referred_item(self, sent: SentItem) -> Item:
        if sent.type == "item_reference":
            return self._context.conversation.get(sent.id or "")
        return build_item(sent, self._input_audio.feed_whole, self._limits)

    def _truncate(self, item: Item, playout: PlayoutTimes, until_s: float) -> None:
        item.content[0].text = playout.truncate_text(item.content[0].text, until_s)
        playout.sound_s = until_s
        end_ms = round(until_s * 1000)
        self._context.emit(ItemTruncated(item_id=item.id, content_index=0, audio_end_ms=end_ms))

    def _commit_turn(self, received: TurnEnded, meaning: str | None = None) -> None:
        feed = received.feed
        content = Content("input_audio", words=feed.words, sound=feed.sound, meaning=meaning)
        item = Item(feed.item_id, "user", [content])
        self._context.emit(
            CommittedEvent(item_id=item.id, previous_item_id=self._context.conversation.last_id)
        )
        self._add_item(item)
        if self.settings.audio.input.transcription is not None and feed.words is not None:
            self._context.spawn(self._emit_transcript(received, feed.words))

    def _add_item(self, item: Item, after: str | None = None) -> None:
        previous = self._context.conversation.add(item, after)
        item_object = item.to_object()
        self._context.emit(
            ItemEvent(type="conversation.item.added", item=item_object, previous_item_id=previous),
            ItemEvent(type="conversation.item.done", item=item_object, previous_item_id=previous),
        )
        self._shorten()

    def _shorten(self) -> None:
        for item_id in self._context.conversation.shorten():
            self._context.emit(ItemDeleted(item_id=item_id))

    async def _emit_transcript(self, received: TurnEnded, words: asyncio.Future[str]) -> None:
        item_id = received.feed.item_id
        await asyncio.wait([words])
        if words.cancelled():
            return
        error = words.exception()
        if isinstance(error, CantataError):
            detail = describe(error).detail
            failure = FailureObject(type=detail.type, code=detail.code, message=detail.message)
            self._context.emit(TranscriptionFailedEvent(item_id=item_id, error=failure))
            return
        transcript = received.feed.transcript
        self._context.emit(
            TranscriptionCompleted(
                item_id=item_id,
                transcript=words.result(),
                logprobs=self._build_logprobs(transcript.logprobs if transcript else ()),
                usage=DurationUsage(seconds=round(received.seconds, 3)),
            )
        )

    def _build_logprobs(self, tokens: Sequence[TokenLogprob]) -> list[LogprobObject] | None:
        return [LogprobObject.of(token) for token in tokens] if self.settings.include else None

    async def _run_idle_timer(self, seconds: float) -> None:
        loop = asyncio.get_running_loop()
        heard_until = max(loop.time(), self._context.output_audio.utterances.heard_until)
        await asyncio.sleep(heard_until - loop.time())
        start_ms = self._input_audio.ms
        await asyncio.sleep(seconds)
        self._idle_timer = None
        silence = self._input_audio.commit_silence()
        self._context.emit(
            IdleEvent(
                audio_start_ms=start_ms,
                audio_end_ms=self._input_audio.ms,
                item_id=silence.feed.item_id,
            )
        )
        self._commit_turn(silence, SILENT)
        self._respond_unprompted()

    def _stop_idle_timer(self) -> None:
        if self._idle_timer is not None:
            self._idle_timer.cancel()
            self._idle_timer = None

    async def _check_semantic(self, settings: SessionSettings, param: str) -> None:
        """Load what semantic turn detection needs, if these settings ask for it."""
        if not isinstance(settings.audio.input.turn_detection, SemanticVad):
            return
        try:
            await self._context.api_context.cascade.prepare_semantic()
        except NotInstalled as error:
            raise InvalidRequest(
                f"{error.message}; valid without it: server_vad, null",
                f"{param}.audio.input.turn_detection.type",
            ) from None

    async def _resolve_voice(self, settings: SessionSettings, param: str) -> str | None:
        """The voice that these settings select, as clients see it."""
        asked = settings.audio.output.voice
        try:
            chosen = await self._context.responder.get_voice(asked)
        except InvalidRequest as error:
            raise type(error)(error.message, param) from None
        if chosen != self.voice and self._context.output_audio.has_sent:
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
