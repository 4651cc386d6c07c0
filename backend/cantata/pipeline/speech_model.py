"""A served model that turns text into speech."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import aclosing, asynccontextmanager
from dataclasses import replace
from typing import cast

from cantata.contract.catalogue import find_voice, with_aliases
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, Voice, check_text_length
from cantata.contract.model.plugin import (
    OpenRequestBuilder,
    PhonemizingBuilder,
    RequestBuilder,
    SpeakerComparer,
)
from cantata.contract.service import Utterance
from cantata.pipeline.admission import Demand
from cantata.pipeline.model import PipelineModel
from cantata.pipeline.open_text import OpenText
from cantata.pipeline.segments import WORDLESS_S, plan_segments
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.speech_pump import PlayoutObserver, SpeechPump, UtterancePart
from cantata.text import TextPause
from cantata.utils.logs import make_work_id

WARM_UP_CHUNKS = 3
"""Chunks of each warm-up utterance."""


class PipelineSpeechModel(PipelineModel):
    """Implements `contract.service.SpeechModel` over a plug-in's builder and its pipeline."""

    def __init__(
        self,
        builder: RequestBuilder,
        policy: SlotPolicy,
        max_input_characters: int,
        sampled: bool,
        voice_aliases: Mapping[str, str],
    ) -> None:
        super().__init__(policy)
        self.capabilities = builder.capabilities
        self.max_input_characters = max_input_characters
        self.sampled = sampled
        self.voices = with_aliases(builder.voices, voice_aliases, self.name)
        self._builder = builder
        self._slots = policy

    @property
    def sample_rate(self) -> int:
        """Sample rate in Hz. Raises StageDied: it is not known before the model has started; so
        `channels`."""
        declared = self.capabilities.sample_rate
        return declared or self.orchestrator.sound_capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        if self.capabilities.sample_rate is not None:
            return 1
        return self.orchestrator.sound_capacity.channels

    def get_voice(self, name: str | None) -> Voice:
        blends = self.capabilities.voice_blends
        return find_voice(self.voices, name, self.name, blends=blends)

    async def warm_up(self) -> None:
        """Begin an utterance and discard it. Raises ConfigError: the sound is not what the model
        declares."""
        made, declared = self.orchestrator.sound_capacity, self.capabilities.sample_rate
        if declared is not None and (declared, 1) != (made.sample_rate, made.channels):
            raise ConfigError(
                f"model {self.name!r} declares mono sound of {declared} Hz and makes "
                f"{made.channels} channels of {made.sample_rate} Hz"
            )
        parts = await self._plan_parts(make_work_id(), self._builder.warm_up)
        async with aclosing(SpeechPump(self.orchestrator).run(parts)) as chunks:
            number = 0
            async for _ in chunks:
                number += 1
                if number == WARM_UP_CHUNKS:
                    break

    async def phonemize(self, text: str, language: str) -> str:
        if not self.capabilities.phonemizes:
            raise InvalidRequest(f"model {self.name!r} does not say its phones", "model")
        check_text_length(len(text), self.max_input_characters)
        builder = cast(PhonemizingBuilder, self._builder)
        return await self._policy.text_executor.run(len(text), builder.phonemize, text, language)

    async def may_be_same_speaker(
        self, first: ReferenceAudio, second: ReferenceAudio
    ) -> bool | None:
        builder = self._builder
        if not isinstance(builder, SpeakerComparer):
            return None
        return await asyncio.to_thread(builder.may_be_same_speaker, first, second)

    @asynccontextmanager
    async def run(
        self, request: SpeechRequest, *, more_text: AsyncIterator[str] | None = None
    ) -> AsyncIterator[Utterance]:
        """Speak a text. Raises ChunkTimeout: the beginning of a text that arrives in fragments came
        too late."""
        await self._policy.wait_until_ready()
        if not request.batch:
            self.check_room()  # before its text costs any time
        request_id = make_work_id()
        parts: Sequence[UtterancePart]
        if more_text is None:
            parts = await self._plan_parts(request_id, request)
        else:
            text = await self._begin(request_id, request, more_text)
            parts = [TextPause(WORDLESS_S) if text.is_wordless else text]
        requests = [part.request for part in parts if not isinstance(part, TextPause)]
        # Silence needs no stage.
        demand = Demand(
            request_id,
            batch=request.batch,
            stretch=max((one.stretch for one in requests), default=1.0),
        )
        async with self._admit(requests, demand if requests else None) as (permit, milestones):
            delays_others = not request.batch and more_text is None
            listener = PlayoutObserver(
                request_id, self.sample_rate, self._slots if delays_others else None
            )
            try:
                async with aclosing(SpeechPump(self.orchestrator, listener).run(parts)) as chunks:
                    utterance = Utterance(request_id, milestones, chunks)
                    utterance.observe(listener)
                    if permit is not None:
                        utterance.observe(permit)
                    yield utterance
            finally:
                listener.leave()

    async def _begin(
        self, request_id: str, request: SpeechRequest, more_text: AsyncIterator[str]
    ) -> OpenText:
        if not self.capabilities.open_text:
            raise InvalidRequest(f"model {self.name!r} speaks complete texts only", "input")
        builder = cast(OpenRequestBuilder, self._builder)
        pace = self.capabilities.pace(request.speed)
        started = replace(request, text="", speed=pace)
        feed = await self._policy.text_executor.run(0, builder.open, request_id, started)
        text = OpenText(
            feed,
            request.text,
            more_text,
            max_characters=self.max_input_characters,
            batch=request.batch,
            stretch=request.speed / pace,
        )
        await text.begin(self.orchestrator.chunk_timeout_s)
        return text

    async def _plan_parts(self, request_id: str, request: SpeechRequest) -> Sequence[UtterancePart]:
        """Plan an utterance in a worker thread: long texts would hold up other streams."""
        length = len(request.text)
        check_text_length(length, self.max_input_characters, may_be_empty=request.continued)
        return await self._policy.text_executor.run(
            length, plan_segments, self._builder, request_id, request
        )
