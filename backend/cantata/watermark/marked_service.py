"""A service whose sound is marked, whoever asks for it and however it is sent."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from dataclasses import replace
from typing import Any, cast

from cantata.contract.chat_service import ChatModel
from cantata.contract.service import Run, SpeechChunk, SpeechModel
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


class _MarkedService(_Marked):
    @property
    def models(self) -> Mapping[str, SpeechModel]:
        return {name: self._speaker(one) for name, one in self._original.models.items()}

    @property
    def chat_models(self) -> Mapping[str, ChatModel]:
        return {name: self._answerer(one) for name, one in self._original.chat_models.items()}

    def model(self, name: str) -> SpeechModel:
        return self._speaker(self._original.model(name))

    def chat_model(self, name: str | None) -> ChatModel:
        return self._answerer(self._original.chat_model(name))

    def _speaker(self, model: SpeechModel) -> SpeechModel:
        return cast(SpeechModel, _MarkedModel(model, self._signs))

    def _answerer(self, model: ChatModel) -> ChatModel:
        return cast(ChatModel, _MarkedModel(model, self._signs)) if model.voices else model


class _MarkedModel(_Marked):
    @asynccontextmanager
    async def run(self, request: object, **options: Any) -> AsyncIterator[Run[Any]]:
        async with self._original.run(request, **options) as run:
            marker = Marker(self._signs, self._original.sample_rate, self._original.channels)
            events = (
                _mark(one, marker) if isinstance(one, SpeechChunk) else one async for one in run
            )
            yield replace(run, events=events)


def _mark(chunk: SpeechChunk, marker: Marker) -> SpeechChunk:
    return replace(chunk, samples=marker.feed(chunk.samples)) if len(chunk.samples) else chunk
