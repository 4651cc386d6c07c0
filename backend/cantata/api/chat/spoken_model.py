"""A model that writes and a model that speaks, as one model whose answers are spoken."""

from __future__ import annotations

from collections.abc import AsyncGenerator, AsyncIterator, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace

from cantata.api.chat.stop import StopFilter
from cantata.api.speech.text_input import ArrivingText
from cantata.contract.chat_service import (
    Answer,
    AnswerDelta,
    AnswerEvent,
    ChatModel,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import AnswerOption, ChatRequest, Modality
from cantata.contract.data.request import SpeechRequest, Voice
from cantata.contract.service import AdmissionReport, SpeechModel
from cantata.text.sentences import split_sentences
from cantata.utils.merge_streams import merge_streams


class SpokenChatModel:
    """Implements `contract.chat_service.ChatModel`. The text is spoken while it is written: as one
    utterance by a model with the capability `open_text`, by others sentence by sentence.

    Args:
        thinker: writes, and has no voices.
        speech_model: speaks them.
        stops: texts that end the answer; they are not spoken.
    """

    def __init__(self, thinker: ChatModel, speech_model: SpeechModel, stops: Sequence[str]) -> None:
        self._thinker, self._speech, self._stops = thinker, speech_model, stops

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

    def voice(self, name: str | None) -> Voice:
        return self._speech.voice(name)

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
            if (piece := await anext(text, None)) is None:
                return
            first += piece
        assert request.voice is not None
        asked = SpeechRequest("", request.voice, seed=request.seed)
        if self._speech.capabilities.open_text:
            async with self._speech.run(asked, more_text=_chained(first, text)) as utterance:
                async for chunk in utterance:
                    yield chunk
            return
        async with aclosing(_sentences(_chained(first, text))) as sentences:
            async for sentence in sentences:
                spoken = replace(asked, text=sentence)
                # What follows the first sentence may have no words.
                asked = replace(asked, continued=True, line_start=False)
                async with self._speech.run(spoken) as utterance:
                    async for chunk in utterance:
                        yield chunk


async def _chained(first: str, rest: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    yield first
    async for piece in rest:
        yield piece


async def _sentences(pieces: AsyncIterator[str]) -> AsyncGenerator[str, None]:
    """Complete sentences as they come, and at the end the rest."""
    text = ""
    async for piece in pieces:
        text += piece
        spans, rest = split_sentences(text)
        for span in spans:
            yield text[span.start : span.end]
        text = text[rest:]
    if text.strip():
        yield text.strip()
