"""A `ChatService` without an engine: real PCM over asyncio, faults on demand, exact counts."""

from __future__ import annotations

import asyncio
import os
import re
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field, replace
from itertools import count

import numpy as np
from fake_chat import CHAT_VOICES, FakeChatModel
from fake_picture import EDITING, FakeImageModel
from fake_transcription import FakeTranscriptionModel

from cantata.contract.catalogue import Catalogue, find_voice
from cantata.contract.chat_service import ChatModel
from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chat import Modality
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    Overloaded,
)
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, Voice
from cantata.contract.image_service import ImageModel
from cantata.contract.process.messages import ReuseReport
from cantata.contract.service import (
    ADMIT,
    TEXT,
    AdmissionReport,
    ReplicaReport,
    Samples,
    SpeechChunk,
    SpeechModel,
    SpokenWord,
    StageReport,
    Utterance,
)
from cantata.contract.transcription_service import TranscriptionModel
from cantata.stages.process.measuring import StepMeter

VOICES = (
    Voice("clara", "Clara", "the default", aliases=("alloy", "nova"), gender="female"),
    Voice("ben", "Ben", aliases=("onyx",)),
)


@dataclass
class Behaviour:
    """How a fake model speaks; tests change it before they send requests."""

    chunk_samples: int = 480
    chunks: int | None = None
    """Chunks of every utterance; None: one per character."""
    interval_s: float = 0.0
    """Between two chunks."""
    first_after_s: float = 0.0
    abort_s: float = 0.0
    """How long an abort takes to reach every stage."""
    may_sound: asyncio.Event | None = None
    """Awaited before the first chunk."""
    may_abort: asyncio.Event | None = None
    """Awaited by an abort."""
    fail_after: int | None = None
    """Chunks after which `error` is raised; 0 is before the first."""
    error: Exception | None = None
    capacity: int = 1000
    full: bool = False
    """Whether the queue is full as well."""


@dataclass
class Counts:
    """Counts of what the fake did."""

    open: int = 0
    asked: int = 0
    """Before any text that is still to come."""
    started: int = 0
    finished: int = 0
    aborted: int = 0
    """Left before the end, with the abort awaited."""
    abort_interrupted: int = 0
    chunks: int = 0
    batch: int = 0
    """Started as file renders."""
    max_open: int = 0
    refused: int = 0
    requests: list[SpeechRequest] = field(default_factory=list)


def expected_pcm(text: str, behaviour: Behaviour, channels: int = 1) -> Samples:
    """What an undisturbed utterance of this text sounds like."""
    chunks = behaviour.chunks if behaviour.chunks is not None else len(text)
    shape = (chunks * behaviour.chunk_samples, channels)
    seed = sum(text.encode()) % 9973
    return np.random.default_rng(seed).uniform(-1.05, 1.05, shape).astype(np.float32)


class FakeModel:
    """Speaks noise that depends on the text alone."""

    def __init__(
        self,
        name: str,
        sample_rate: int = 24000,
        channels: int = 1,
        instructions: bool = False,
    ) -> None:
        self.name = name
        self.capabilities = Capabilities(
            instructions=instructions,
            languages=("en",),
            open_text=instructions,
            options={"mood": {"type": "string"}},
        )
        self.voices: tuple[Voice, ...] = VOICES
        self.sample_rate = sample_rate
        self.channels = channels
        self.max_input_characters = 200
        self.sampled = instructions
        self.behaviour = Behaviour()
        self.counts = Counts()
        self.meter = StepMeter()
        self._ids = count()

    @property
    def admission(self) -> AdmissionReport:
        refused, admitted = {"queue_full": self.counts.refused}, {"live": self.counts.started}
        places, running = self.behaviour.capacity, self.counts.open
        return AdmissionReport(places, running, 0, 0, refused, admitted, 1000, running)

    def get_voice(self, name: str | None) -> Voice:
        blends = self.capabilities.voice_blends
        return find_voice(tuple(self.voices), name, self.name, blends=blends)

    async def phonemize(self, text: str, language: str) -> str:
        if language not in ("a", "en"):
            raise InvalidRequest(f"language {language!r}: valid: a, en", "language")
        return f"/{text}/"

    async def may_be_same_speaker(
        self, first: ReferenceAudio, second: ReferenceAudio
    ) -> bool | None:
        """By the rates of their recordings, if it can follow any."""
        same = first.sample_rate == second.sample_rate
        return same if self.capabilities.references else None

    def check_room(self) -> None:
        if self.behaviour.full:
            self.counts.refused += 1
            raise Overloaded("the queue is full", retry_after_s=2.5)

    @asynccontextmanager
    async def run(
        self, request: SpeechRequest, *, more_text: AsyncIterator[str] | None = None
    ) -> AsyncIterator[Utterance]:
        self.counts.asked += 1
        if more_text is not None:
            request = replace(request, text="".join([text async for text in more_text]))
        if self.counts.open >= self.behaviour.capacity:
            self.counts.refused += 1
            raise Overloaded("all slots are taken", retry_after_s=2.5)
        if any("\u4e00" <= c <= "\u9fff" for c in request.text):
            raise InvalidRequest("nothing in it can be spoken", "input")
        self.counts.requests.append(request)
        self.counts.batch += request.batch
        self.counts.max_open = max(self.counts.max_open, self.counts.open + 1)
        self.counts.open += 1
        self.counts.started += 1
        ended = [False]
        try:
            milestones = tuple(Milestone(step, time.monotonic()) for step in (TEXT, ADMIT))
            pcm = self._pcm(request.text, ended)
            yield Utterance(f"{self.name}-{next(self._ids)}", milestones, pcm)
        finally:
            if ended[0]:
                self.counts.finished += 1
            else:
                await self._abort()
            self.counts.open -= 1

    async def _abort(self) -> None:
        try:
            await asyncio.sleep(self.behaviour.abort_s)
            if self.behaviour.may_abort is not None:
                await self.behaviour.may_abort.wait()
        except asyncio.CancelledError:
            self.counts.abort_interrupted += 1
            raise
        self.counts.aborted += 1

    async def _pcm(self, text: str, ended: list[bool]) -> AsyncIterator[SpeechChunk]:
        how = self.behaviour
        await asyncio.sleep(how.first_after_s)
        if how.may_sound is not None:
            await how.may_sound.wait()
        sound = expected_pcm(text, how, self.channels)
        for index in range(len(sound) // how.chunk_samples):
            if how.fail_after == index and how.error is not None:
                raise how.error
            if index:
                await asyncio.sleep(how.interval_s)
            self.counts.chunks += 1
            self.meter.add(0.004, 1)
            samples = sound[index * how.chunk_samples : (index + 1) * how.chunk_samples]
            milestones = () if index else (Milestone("talker", time.monotonic()),)
            yield SpeechChunk(samples, self._words(text, index), milestones)
        ended[0] = True

    def _words(self, text: str, index: int) -> tuple[SpokenWord, ...]:
        """The word that begins with this character: one chunk is one character."""
        chunk_s = self.behaviour.chunk_samples / self.sample_rate
        return tuple(
            SpokenWord(*word.span(), word.start() * chunk_s, word.end() * chunk_s)
            for word in re.finditer(r"\w+", text)
            if word.start() == index
        )


class FakeService(Catalogue[SpeechModel, ChatModel, ImageModel, TranscriptionModel]):
    """Two models that speak, the second in stereo; two that answer, the second in text alone; two
    that draw, the second from pictures alone; one that listens."""

    def __init__(self, start_s: float = 0.0, start_error: Exception | None = None) -> None:
        self.solo = FakeModel("solo", instructions=True)
        self.duo = FakeModel("duo", sample_rate=48000, channels=2)
        self.omni = FakeChatModel("omni", frozenset(Modality), CHAT_VOICES, 16_000)
        self.reader = FakeChatModel("reader", frozenset({Modality.TEXT, Modality.IMAGE}), (), 0)
        self.painter = FakeImageModel("painter")
        self.editor = FakeImageModel("editor", EDITING)
        self.ears = FakeTranscriptionModel("ears")
        super().__init__(
            {"solo": self.solo, "duo": self.duo},
            {"omni": self.omni, "reader": self.reader},
            {"painter": self.painter, "editor": self.editor},
            {"ears": self.ears},
            default_model="solo",
        )
        self.ready = False
        self.stops = 0
        self.may_start = asyncio.Event()
        self.may_start.set()
        self._start_s = start_s
        self._start_error = start_error

    async def collect_stage_reports(self) -> list[StageReport]:
        return [
            StageReport(
                model=model.name,
                stage=stage,
                pid=os.getpid(),
                alive=self.ready,
                startup_s=1.5,
                rss_bytes=1 << 20,
                counts={"requests": model.counts.open},
                steps=model.meter.report,
                reuse=ReuseReport(3, 2, 1, 4096) if stage == "codec" else None,
                state_bytes=1 << 30 if stage == "codec" else 0,
            )
            for model in (self.solo, self.duo)
            for stage in ("talker", "codec")
        ]

    @property
    def trouble(self) -> str:
        return "a stage is down"

    def get_replica_reports(self) -> list[ReplicaReport]:
        return []

    async def start(self) -> None:
        await self.may_start.wait()
        await asyncio.sleep(self._start_s)
        if self._start_error is not None:
            raise self._start_error
        self.ready = True

    async def stop(self) -> None:
        self.ready = False
        self.stops += 1


async def eventually(condition: object, timeout_s: float = 30.0) -> None:
    """Wait until a callable is true."""
    assert callable(condition)
    async with asyncio.timeout(timeout_s):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.002)


__all__ = ["Behaviour", "CantataError", "FakeModel", "FakeService", "eventually", "expected_pcm"]
