"""Turns the parts of one text into an utterance: runs each through the pipeline, in order, and
streams the sound. A part may continue from the output of earlier ones."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncGenerator, AsyncIterator, Iterable, Sequence
from contextlib import AbstractAsyncContextManager, nullcontext
from dataclasses import replace
from typing import Any

import numpy as np

from cantata.audio.playback import Playback
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.contract.service import SpeechChunk
from cantata.pipeline.open_text import OpenText
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from cantata.pipeline.segments import TextSegment, locate_words
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.time_stretch import ChunkStretch
from cantata.text import TextPause


class ContinuationHistory:
    """Keeps the output of a text's segments, for later segments that continue from it. `requests`:
    the segments."""

    def __init__(self, requests: Iterable[PipelineRequest]) -> None:
        self._edges = {
            earlier: EdgeSpec(request.continuation.source, CLIENT)
            for request in requests
            if request.continuation is not None
            for earlier in request.continuation.earlier
        }
        self._outputs: dict[str, Payload] = {}

    def find_edge(self, request: PipelineRequest) -> EdgeSpec | None:
        """The edge whose output a later segment needs; None: none does."""
        return self._edges.get(request.request_id)

    async def keep(self, request: PipelineRequest, chunks: AsyncIterator[Chunk[Payload]]) -> None:
        """Collect a segment's whole output on that edge."""
        parts: list[Any] = [chunk.payload async for chunk in chunks]
        self._outputs[request.request_id] = type(parts[0]).join(parts)

    def with_history(self, request: PipelineRequest) -> PipelineRequest:
        """The segment with the inputs that follow from those before it."""
        continuation = request.continuation
        if continuation is None:
            return request
        outputs = [self._outputs[earlier] for earlier in continuation.earlier]
        return replace(request, inputs=continuation.inputs(outputs), continuation=None)


UtterancePart = TextSegment | TextPause | OpenText


class PlayoutObserver:
    """Observes an utterance: simulates its playback, and tells admission when it may run dry.

    Args:
        sample_rate: Hz.
        policy: admits requests. None for a file, or for a text that still arrives: no other
            request has to wait for its listener.
    """

    def __init__(self, request_id: str, sample_rate: int, policy: SlotPolicy | None) -> None:
        self._request_id, self._sample_rate, self._policy = request_id, sample_rate, policy
        self._playback = Playback()

    @property
    def playout_deadline_s(self) -> float | None:
        """When all sound so far has been played, by the monotonic clock; None before any."""
        return self._playback.playout_deadline_s

    def on_wait(self) -> None:
        deadline_s = self._playback.playout_deadline_s
        if self._policy is not None and deadline_s is not None:
            now_s = time.monotonic()
            self._policy.playout_buffers.mark_waiting(self._request_id, max(deadline_s, now_s))

    def on_event(self, chunk: SpeechChunk) -> None:
        self._playback.take(time.monotonic(), len(chunk.samples) / self._sample_rate)
        if self._policy is not None:
            self._policy.playout_buffers.clear_waiting(self._request_id)
            self._policy.look_again()

    def on_end(self) -> None:
        self.leave()

    def leave(self) -> None:
        """Stop: the listener no longer counts."""
        if self._policy is not None:
            self._policy.playout_buffers.clear_waiting(self._request_id)


class SpeechPump:
    """Runs the parts of one utterance, each once the client has taken the sound of the one before.
    Stretches sound to the requested speed, applies its passage's loudness, and times words on the
    utterance's clock.

    Args:
        listener: says when the sound so far has been played; None: nobody listens.
    """

    def __init__(self, orchestrator: Orchestrator, listener: PlayoutObserver | None = None) -> None:
        self._orchestrator, self._listener = orchestrator, listener
        output = orchestrator.sound_capacity
        self._output, self._sample_rate = output, output.sample_rate or 0
        self._samples = 0
        """Samples so far, per channel."""

    async def run(self, parts: Sequence[UtterancePart]) -> AsyncGenerator[SpeechChunk, None]:
        history = ContinuationHistory(
            part.request for part in parts if isinstance(part, TextSegment)
        )
        for part in parts:
            if isinstance(part, TextPause):
                yield self._build_silence(part)
                continue
            request = replace(
                history.with_history(part.request), playout_deadline_s=self._playout_deadline_s
            )
            began_s = self._samples / self._sample_rate
            stretch = ChunkStretch(request.stretch, self._output)
            async with self._orchestrator.open(request) as opened:
                async with _feed_text(part, self._orchestrator, opened):
                    async for chunk in self._orchestrator.sound(opened):
                        if not (chunk.payload.units or chunk.payload.words):
                            continue
                        for _ in stretch.feed(chunk):
                            await asyncio.sleep(0)
                        for ready in stretch.ready():
                            yield self._build_chunk(part, ready, began_s)
                    for rest in stretch.finish():
                        if rest.payload.units or rest.payload.words:
                            yield self._build_chunk(part, rest, began_s)
                if (edge := history.find_edge(request)) is not None:
                    await history.keep(request, self._orchestrator.output(opened, edge))

    @property
    def _playout_deadline_s(self) -> float | None:
        return None if self._listener is None else self._listener.playout_deadline_s

    def _build_silence(self, pause: TextPause) -> SpeechChunk:
        length = round(pause.duration_s * self._sample_rate)
        self._samples += length
        return SpeechChunk(np.zeros((length, self._output.channels), np.float32))

    def _build_chunk(
        self, part: TextSegment | OpenText, chunk: Chunk[Pcm], began_s: float
    ) -> SpeechChunk:
        sound = chunk.payload
        self._samples += sound.units
        if isinstance(part, OpenText):
            return SpeechChunk(sound.samples, milestones=chunk.milestones)
        gain = part.passage.prosody.gain
        samples = sound.samples if gain == 1.0 else sound.samples * np.float32(gain)
        return SpeechChunk(samples, locate_words(part, sound.words, began_s), chunk.milestones)


def _feed_text(
    part: TextSegment | OpenText, orchestrator: Orchestrator, opened: OpenRequest
) -> AbstractAsyncContextManager[None]:
    """While inside, passes on a text that still arrives."""
    return part.feeding(orchestrator, opened) if isinstance(part, OpenText) else nullcontext()
