"""A service whose sound is marked, whoever asks for it and however it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from cantata.contract.chat_service import Answer, AnswerEvent, ChatModel
from cantata.contract.data.chat import ChatRequest
from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import ServedModel, SpeechChunk, Utterance
from cantata.contract.transcription_service import TranscriptionService
from cantata.watermark.marker import Marker
from cantata.watermark.pattern import Signs


def mark_service(service: TranscriptionService, signs: Signs) -> TranscriptionService:
    """The same service, with a mark in what its models say: 3 ms of this process's CPU for a second
    of sound."""
    return cast(TranscriptionService, _MarkedService(service, signs))


class _Marked:
    """Everything that is not overridden is the original's."""

    def __init__(self, original: Any, signs: Signs) -> None:
        self._original, self._signs = original, signs

    def __getattr__(self, name: str) -> Any:
        return getattr(self._original, name)

    def _marker(self) -> Marker:
        return Marker(self._signs, self._original.sample_rate, self._original.channels)


class _MarkedService(_Marked):
    @property
    def models(self) -> Mapping[str, ServedModel]:
        return {name: self._speaker(one) for name, one in self._original.models.items()}

    @property
    def chat_models(self) -> Mapping[str, ChatModel]:
        return {name: self._answerer(one) for name, one in self._original.chat_models.items()}

    def model(self, name: str) -> ServedModel:
        return self._speaker(self._original.model(name))

    def chat_model(self, name: str | None) -> ChatModel:
        return self._answerer(self._original.chat_model(name))

    def _speaker(self, model: ServedModel) -> ServedModel:
        return cast(ServedModel, _MarkedSpeaker(model, self._signs))

    def _answerer(self, model: ChatModel) -> ChatModel:
        return cast(ChatModel, _MarkedAnswerer(model, self._signs)) if model.voices else model


class _MarkedSpeaker(_Marked):
    def speak(
        self,
        request: SpeechRequest,
        *,
        batch: bool = False,
        more_text: AsyncIterator[str] | None = None,
    ) -> AbstractAsyncContextManager[Utterance]:
        return self._speak(self._original.speak(request, batch=batch, more_text=more_text))

    @asynccontextmanager
    async def _speak(
        self, speaking: AbstractAsyncContextManager[Utterance]
    ) -> AsyncIterator[Utterance]:
        async with speaking as utterance:
            marker = self._marker()
            chunks = (_mark(chunk, marker) async for chunk in utterance)
            yield replace(utterance, chunks=chunks)


class _MarkedAnswerer(_Marked):
    def answer(self, request: ChatRequest) -> AbstractAsyncContextManager[Answer]:
        return self._answer(self._original.answer(request))

    @asynccontextmanager
    async def _answer(
        self, answering: AbstractAsyncContextManager[Answer]
    ) -> AsyncIterator[Answer]:
        async with answering as answer:
            marker = self._marker()
            events: AsyncIterator[AnswerEvent] = (
                _mark(one, marker) if isinstance(one, SpeechChunk) else one async for one in answer
            )
            yield replace(answer, events=events)


def _mark(chunk: SpeechChunk, marker: Marker) -> SpeechChunk:
    return replace(chunk, samples=marker.feed(chunk.samples)) if len(chunk.samples) else chunk
