"""One served model: a plug-in's texts, admitted and spoken through its pipeline."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Mapping, Sequence
from contextlib import AsyncExitStack, aclosing, asynccontextmanager
from dataclasses import replace
from typing import cast

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.data.chunks import Chunk, Milestone, Pcm
from cantata.contract.data.errors import ConfigError, InvalidRequest
from cantata.contract.data.request import PipelineRequest, ReferenceAudio, SpeechRequest, Voice
from cantata.contract.model.plugin import (
    ModelPlugin,
    OpenRequestBuilder,
    PhonemizingBuilder,
    RequestBuilder,
    SpeakerComparer,
)
from cantata.contract.service import ADMIT, TEXT, AdmissionReport, Samples, SpeechChunk, Utterance
from cantata.contract.voices import find_voice, with_aliases
from cantata.pipeline.continuation_history import ContinuationHistory
from cantata.pipeline.open_text import OpenText, speak_open_text
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.served_pipeline import ServedPipeline
from cantata.pipeline.time_stretch import time_stretch
from cantata.pipeline.utterance import (
    WORDLESS_S,
    TextSegment,
    check_length,
    plan_utterance,
    spoken_words,
)
from cantata.scheduling.admission import AdmissionPermit
from cantata.text import Pause
from cantata.utils.logs import new_work_id

WARM_UP_CHUNKS = 3
"""Of each warm-up utterance."""


class PipelineModel:
    """One served model: its plug-in's request builder and its pipeline's orchestrator."""

    def __init__(
        self,
        plugin: ModelPlugin,
        builder: RequestBuilder,
        orchestrator: Orchestrator,
        max_input_characters: int,
        sampled: bool,
        voice_aliases: Mapping[str, str],
    ) -> None:
        self.name = plugin.name
        self.capabilities = builder.capabilities
        self.max_input_characters = max_input_characters
        self.sampled = sampled
        self.orchestrator = orchestrator
        self._builder = builder
        self.voices = with_aliases(builder.voices, voice_aliases, plugin.name)
        """What callers may ask for, the default first."""
        self._served = ServedPipeline(plugin.name, orchestrator)

    @property
    def sample_rate(self) -> int:
        """Hz of everything that `speak` yields.

        Raises:
            StageDied: it is not known before the model has started; so `channels`.
        """
        declared = self.capabilities.sample_rate
        return declared or self.orchestrator.sound_capacity.sample_rate or 0

    @property
    def channels(self) -> int:
        """Of everything that `speak` yields."""
        if self.capabilities.sample_rate is not None:
            return 1
        return self.orchestrator.sound_capacity.channels

    @property
    def admission(self) -> AdmissionReport:
        """Running and waiting requests; no places before `start` has finished."""
        return self._served.report

    def voice(self, name: str | None) -> Voice:
        """Look a voice up by id, name or alias; None is the default.

        Raises:
            VoiceNotFound: lists the valid ids.
        """
        blends = self.capabilities.voice_blends
        return find_voice(self.voices, name, self.name, blends=blends)

    async def start(self) -> None:
        """Start the pipeline, warm it up and measure what it can serve."""
        await self._served.start(self._speak_and_discard)
        made, declared = self.orchestrator.sound_capacity, self.capabilities.sample_rate
        if declared is not None and (declared, 1) != (made.sample_rate, made.channels):
            raise ConfigError(
                f"model {self.name!r} declares mono sound of {declared} Hz and makes "
                f"{made.channels} channels of {made.sample_rate} Hz"
            )

    async def stop(self, deadline_s: float) -> None:
        """Drain the stages until the deadline and end their processes."""
        await self._served.stop(deadline_s)

    def check_room(self) -> None:
        """Reject a live request that the queue has no room for; takes microseconds.

        Raises:
            Overloaded: the queue is full.
        """
        self._served.check_room()

    async def phonemize(self, text: str, language: str) -> str:
        """The phones that the model reads a text as.

        Raises:
            InvalidRequest: the model does not say, or the text or its language is not read.
        """
        if not self.capabilities.phonemizes:
            raise InvalidRequest(f"model {self.name!r} does not say its phones", "model")
        check_length(len(text), self.max_input_characters)
        builder = cast(PhonemizingBuilder, self._builder)
        return await self._served.text_executor.run(len(text), builder.phonemize, text, language)

    async def may_be_same_speaker(
        self, first: ReferenceAudio, second: ReferenceAudio
    ) -> bool | None:
        """Whether two recordings may be of one speaker; None: the model does not tell."""
        builder = self._builder
        if not isinstance(builder, SpeakerComparer):
            return None
        return await asyncio.to_thread(builder.may_be_same_speaker, first, second)

    async def _speak_and_discard(self) -> None:
        request = self._builder.warm_up
        parts = await self._parts(new_work_id(), request, batch=False)
        async with aclosing(self._speak(parts)) as chunks:
            number = 0
            async for _ in chunks:
                number += 1
                if number == WARM_UP_CHUNKS:
                    break

    @asynccontextmanager
    async def speak(
        self,
        request: SpeechRequest,
        *,
        batch: bool = False,
        more_text: AsyncIterator[str] | None = None,
    ) -> AsyncIterator[Utterance]:
        """Speak a text; leaving the block frees the request everywhere.

        Raises:
            ChunkTimeout: the beginning of a text that arrives in pieces came too late.
            InvalidRequest: the text or an option cannot be served.
            Overloaded: no place or queue room now.
            Quarantined: the request has ended a stage process twice.
            StageDied: the model is not running.
        """
        self._served.check_ready()
        if not batch:
            check_length(len(request.text), self.max_input_characters)
            self._served.check_room()  # before its text costs any time
        request_id = new_work_id()
        if more_text is None:
            parts = await self._parts(request_id, request, batch=batch)
            stretch = max(
                (p.request.stretch for p in parts if isinstance(p, TextSegment)), default=1.0
            )
            for part in parts:
                if isinstance(part, TextSegment):
                    self.orchestrator.check(part.request)
            is_silence, spoken = all(isinstance(p, Pause) for p in parts), self._speak(parts)
        else:
            text = await self._begin(request_id, request, batch, more_text)
            is_silence = text.is_wordless
            if is_silence:
                stretch, spoken = 1.0, self._speak([Pause(WORDLESS_S)])
            else:
                stretch = text.request.stretch
                spoken = speak_open_text(self.orchestrator, text)
        text_read = Milestone(TEXT, time.monotonic())
        async with AsyncExitStack() as stack:
            if not is_silence:  # which needs no stage
                admission = self._served.admit(batch=batch, stretch=stretch)
                spoken = _count_first_sound(await stack.enter_async_context(admission), spoken)
            chunks = await stack.enter_async_context(aclosing(spoken))
            admitted = Milestone(ADMIT, time.monotonic())
            yield Utterance(request_id, (text_read, admitted), chunks)

    async def _begin(
        self, request_id: str, request: SpeechRequest, batch: bool, more_text: AsyncIterator[str]
    ) -> OpenText:
        if not self.capabilities.open_text:
            raise InvalidRequest(f"model {self.name!r} speaks complete texts only", "input")
        check_length(len(request.text), self.max_input_characters)
        builder = cast(OpenRequestBuilder, self._builder)
        pace = self.capabilities.pace(request.speed)
        started = replace(request, text="", speed=pace)
        feed = await self._served.text_executor.run(0, builder.open, request_id, started)
        stretch = request.speed / pace
        pieces = self._limited(len(request.text), more_text)
        text = OpenText(feed, request.text, pieces, batch=batch, stretch=stretch)
        await text.begin(self.orchestrator.chunk_timeout_s)
        return text

    async def _limited(
        self, length: int, more_text: AsyncIterator[str]
    ) -> AsyncGenerator[str, None]:
        async for text in more_text:
            length += len(text)
            check_length(length, self.max_input_characters)
            yield text

    async def _parts(
        self, request_id: str, request: SpeechRequest, *, batch: bool
    ) -> list[TextSegment | Pause]:
        """Text work is pure Python and may be long: it must not hold up other streams."""
        length = len(request.text)
        check_length(length, self.max_input_characters)
        return await self._served.text_executor.run(
            length, plan_utterance, self._builder, request_id, request, batch=batch
        )

    async def _speak(
        self, parts: Sequence[TextSegment | Pause]
    ) -> AsyncGenerator[SpeechChunk, None]:
        playback, output = Playback(), self.orchestrator.sound_capacity
        samples = 0  # so far
        history = ContinuationHistory(
            part.request for part in parts if isinstance(part, TextSegment)
        )
        for part in parts:
            if isinstance(part, Pause):
                silence = self._silence(part)
                playback.take(time.monotonic(), len(silence) / self.sample_rate)
                samples += len(silence)
                yield SpeechChunk(silence)
                continue
            began_s = samples / self.sample_rate
            gain = part.passage.prosody.gain
            request = replace(
                history.with_history(part.request), playout_deadline_s=playback.playout_deadline_s
            )
            async with (
                self.orchestrator.open(request) as opened,
                aclosing(self.orchestrator.sound(opened)) as unpaced,
                aclosing(time_stretch(unpaced, request.stretch, output)) as paced,
                aclosing(self._watched(request, paced, playback)) as chunks,
            ):
                async for chunk in chunks:
                    sound = chunk.payload
                    samples += sound.units
                    words = spoken_words(part, sound.words, began_s)
                    louder = sound.samples if gain == 1.0 else sound.samples * np.float32(gain)
                    yield SpeechChunk(louder, words, chunk.milestones)
                if (edge := history.find_edge(request)) is not None:
                    async with aclosing(self.orchestrator.output(opened, edge)) as earlier:
                        await history.keep(request, earlier)

    async def _watched(
        self, request: PipelineRequest, chunks: AsyncIterator[Chunk[Pcm]], playback: Playback
    ) -> AsyncGenerator[Chunk[Pcm], None]:
        """A piece's chunks; while its listener waits for one, admission knows when it runs dry."""
        request_id = request.request_id
        try:
            while True:
                if playback.playout_deadline_s is not None and not request.batch:
                    self._served.playout_buffers.waits(
                        request_id, max(playback.playout_deadline_s, time.monotonic())
                    )
                chunk = await anext(chunks, None)
                self._served.playout_buffers.served(request_id)
                if chunk is None:
                    return
                playback.take(time.monotonic(), chunk.payload.units / self.sample_rate)
                self._served.look_again()
                yield chunk
        finally:
            self._served.playout_buffers.served(request_id)

    def _silence(self, pause: Pause) -> Samples:
        length = round(pause.duration_s * self.sample_rate)
        return np.zeros((length, self.channels), np.float32)


async def _count_first_sound(
    permit: AdmissionPermit, chunks: AsyncGenerator[SpeechChunk, None]
) -> AsyncGenerator[SpeechChunk, None]:
    """The chunks; with the first of them, the request's place counts as having sound."""
    async with aclosing(chunks):
        async for chunk in chunks:
            permit.mark_first_sound()
            yield chunk
