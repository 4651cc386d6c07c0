"""A model that writes and a model that speaks, as one model whose answers are spoken.

An answer that is still being written is cut into pieces, for a voice that speaks complete texts.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import dataclass, replace

from cantata.api.chat.measured_answer import StopFilter
from cantata.api.speech.opening_timer import plan_opening
from cantata.api.speech.text_input import ArrivingText
from cantata.api.speech.voice_choice import ChosenVoice
from cantata.audio.playback import Playback
from cantata.contract.chat_service import (
    Answer,
    AnswerDelta,
    AnswerEvent,
    ChatModel,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import AnswerOption, ChatRequest, Modality
from cantata.contract.data.request import SpeechRequest, TextSpan, Voice
from cantata.contract.service import AdmissionReport, SpeechChunk, SpeechModel
from cantata.text.sentences import iterate_line_starts, split_sentences, trimmed
from cantata.utils.merge_streams import merge_streams


@dataclass(frozen=True, slots=True)
class SpokenPiece:
    """A sentence, or the beginning of one."""

    text: str
    line_start: bool


class ListenerPlayback:
    """How much sound a listener who plays an answer at once still has, and how soon the voice
    begins."""

    def __init__(self) -> None:
        self._playback = Playback()
        self._asked_s: float | None = None
        self._first_sound_s = 0.0

    @property
    def sound_until_s(self) -> float:
        """Until when there is sound, less the time that the voice last needed to begin; loop
        time."""
        return (self._playback.playout_deadline_s or 0.0) - self._first_sound_s

    def begin_piece(self) -> None:
        """The voice is asked for the next piece."""
        self._asked_s = asyncio.get_running_loop().time()

    def take(self, duration_s: float) -> None:
        """Sound has come."""
        now = asyncio.get_running_loop().time()
        if self._asked_s is not None:
            self._first_sound_s, self._asked_s = now - self._asked_s, None
        self._playback.take(now, duration_s)


async def cut_pieces(
    first: str, arriving: ArrivingText, playback: ListenerPlayback | None
) -> AsyncGenerator[SpokenPiece, None]:
    """Complete sentences as they come, and at the end the rest.

    Args:
        first: the beginning of the text, which has just come.
        playback: of a listener who would wait for the end of a sentence in silence: the beginning
            of one is a piece, too, where `plan_opening` says so; None: nobody listens yet.
    """
    text, line_start, ended = first, True, False
    since_s = asyncio.get_running_loop().time()
    while not ended:
        text += arriving.take_arrived()
        spans, rest = split_sentences(text)
        opening = None if playback is None else plan_opening(text, since_s, playback.sound_until_s)
        if not spans:
            due_s = None if opening is None else opening.due_s
            try:
                async with asyncio.timeout_at(due_s):
                    piece = await anext(arriving, None)
            except TimeoutError:
                assert opening is not None
                spans, rest = [opening.span], opening.rest
            else:
                ended = piece is None
                text += piece or ""
                continue
        starts = list(iterate_line_starts(text, spans, rest, line_start=line_start))
        for span, starts_line in zip(spans, starts, strict=False):
            yield SpokenPiece(text[span.start : span.end], starts_line)
        text, line_start = text[rest:], starts[-1]
        since_s = asyncio.get_running_loop().time()
    span = trimmed(text, TextSpan(0, len(text)))
    if span.start < span.end:
        yield SpokenPiece(text[span.start : span.end], line_start or "\n" in text[: span.start])


class SpokenChatModel:
    """Implements `contract.chat_service.ChatModel`. The text is spoken while it is written: as one
    utterance by a model with the capability `open_text`, by others piece by piece (`cut_pieces`).

    Args:
        thinker: writes, and has no voices.
        stops: texts that end the answer; they are not spoken.
        live: somebody listens while the answer is made; else whole sentences are spoken.
    """

    def __init__(
        self,
        thinker: ChatModel,
        speech_model: SpeechModel,
        chosen: ChosenVoice,
        stops: Sequence[str],
        *,
        live: bool,
    ) -> None:
        self.chosen = chosen
        self.spoken_by = speech_model.name
        self._thinker, self._speech, self._stops = thinker, speech_model, stops
        self._live = live

    @property
    def name(self) -> str:
        return self._thinker.name

    @property
    def takes(self) -> frozenset[Modality]:
        return self._thinker.takes

    @property
    def calls_tools(self) -> bool:
        return self._thinker.calls_tools

    @property
    def thinks(self) -> bool:
        return self._thinker.thinks

    @property
    def options(self) -> frozenset[AnswerOption]:
        return self._thinker.options

    @property
    def voices(self) -> tuple[Voice, ...]:
        return self._speech.voices

    @property
    def sample_rate(self) -> int:
        return self._speech.sample_rate

    @property
    def channels(self) -> int:
        return self._speech.channels

    @property
    def admission(self) -> AdmissionReport:
        """The thinker's; the speech model's is its own."""
        return self._thinker.admission

    def get_voice(self, name: str | None) -> Voice:
        return self._speech.get_voice(name)

    def check_room(self) -> None:
        """Reject a request that one of both models has no room for."""
        self._thinker.check_room()
        self._speech.check_room()

    @asynccontextmanager
    async def run(self, request: ChatRequest) -> AsyncIterator[Answer]:
        """Continue a conversation; leaving the block frees both models."""
        async with self._thinker.run(replace(request, voice=None)) as written:
            if request.voice is None:
                yield written
                return
            text = ArrivingText()
            streams = (self._write(written, text), self._speak(request, text))
            async with aclosing(merge_streams(*streams)) as events:
                yield Answer(
                    written.request_id,
                    written.milestones,
                    events,
                    prompt_tokens=written.prompt_tokens,
                )

    async def _write(self, answer: Answer, text: ArrivingText) -> AsyncGenerator[AnswerEvent, None]:
        """The text, passed on to the speech model up to a stop text."""
        stops, limit = StopFilter(self._stops), self._speech.max_input_characters
        async for event in answer:
            if isinstance(event, AnswerDelta):
                event = replace(event, text=stops.feed(event.text))
                text.push(event.text, limit)
            elif isinstance(event, TextEnd):
                rest = stops.finish()
                text.push(rest, limit)
                yield AnswerDelta(rest, 0)
            yield event
            if stops.stopped:
                yield TextEnd(FinishReason.STOP)
                break
        text.close()

    async def _speak(
        self, request: ChatRequest, text: ArrivingText
    ) -> AsyncGenerator[AnswerEvent, None]:
        """The sound; none of a text without words."""
        first = ""
        while not first.strip():
            if (more := await anext(text, None)) is None:
                return
            first += more
        voice, reference = self.chosen.voice, self.chosen.reference
        asked = SpeechRequest(
            "", voice, reference=reference, seed=request.seed, batch=request.batch
        )
        if self._speech.capabilities.open_text:
            async with self._speech.run(asked, more_text=_chain(first, text)) as utterance:
                async for chunk in utterance:
                    yield chunk
            return
        playback = ListenerPlayback() if self._live else None
        async with aclosing(cut_pieces(first, text, playback)) as pieces:
            async for piece in pieces:
                spoken = replace(asked, text=piece.text, line_start=piece.line_start)
                # What follows the first piece may have no words.
                asked = replace(asked, continued=True)
                async for chunk in self._speak_text(spoken, playback):
                    yield chunk

    async def _speak_text(
        self, request: SpeechRequest, playback: ListenerPlayback | None
    ) -> AsyncGenerator[SpeechChunk, None]:
        if playback is not None:
            playback.begin_piece()
        async with self._speech.run(request) as utterance:
            async for chunk in utterance:
                if playback is not None and len(chunk.samples):
                    playback.take(len(chunk.samples) / self._speech.sample_rate)
                yield chunk


async def _chain(first: str, rest: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    yield first
    async for piece in rest:
        yield piece
