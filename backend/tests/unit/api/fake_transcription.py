"""A `TranscriptionModel` without an engine: words that follow from the sound's length, and exact
counts."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from itertools import count
from typing import Any

import numpy as np

from cantata.contract.data.errors import Overloaded
from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    TokenLogprob,
    TranscribedWord,
    Transcript,
    TranscriptionRequest,
)
from cantata.contract.service import AdmissionReport

WORD_S = 0.5
"""Seconds of sound for each word."""
PROBABILITY = 0.75


@dataclass
class HearingBehaviour:
    """How a fake model listens; tests change it before they send requests."""

    may_finish: asyncio.Event | None = None
    """Awaited before a transcript is there."""
    text: str | None = None
    """What every window says; None: numbered words."""
    error: Exception | None = None
    """Raised instead of a transcript."""
    full: bool = False
    may_know: asyncio.Event | None = None
    """Awaited before a partial transcript is there."""


@dataclass
class HearingCounts:
    """Counts of what the fake did."""

    open: int = 0
    max_open: int = 0
    finished: int = 0
    requests: list[TranscriptionRequest] = field(default_factory=list)
    sounds: list[np.ndarray[Any, np.dtype[np.float32]]] = field(default_factory=list)
    """What each finished window consisted of."""
    asked: list[float] = field(default_factory=list)
    """Seconds of sound after which partial transcripts were asked for."""


def expected_words(seconds: float) -> tuple[TranscribedWord, ...]:
    """The words of a window of this length."""
    return tuple(
        TranscribedWord(f"word{n}", n * WORD_S, (n + 1) * WORD_S, PROBABILITY, (n,))
        for n in range(int(seconds / WORD_S))
    )


def expected_transcript(seconds: float, request: TranscriptionRequest) -> Transcript:
    """The transcript of a window of this length."""
    words = expected_words(seconds)
    text = " ".join(word.text for word in words)
    shown = words if request.timestamps else ()
    asked = words if request.logprobs else ()
    logprobs = tuple(TokenLogprob(w.text, tuple(w.text.encode()), -0.25) for w in asked)
    language = "en" if request.translate else request.language or "en"
    return Transcript(text, language, shown, logprobs, -0.25, 0.01, 0.0, seconds)


class FakeTranscriptionModel:
    """One model that listens."""

    def __init__(
        self,
        name: str,
        languages: tuple[str, ...] = ("en", "de"),
        *,
        translates: bool = True,
        has_timestamps: bool = True,
        has_partials: bool = True,
        max_window_s: float = 30.0,
    ) -> None:
        self.name = name
        self.languages = languages
        self.translates = translates
        self.has_timestamps = has_timestamps
        self.has_partials = has_partials
        self.max_window_s = max_window_s
        self.behaviour = HearingBehaviour()
        self.counts = HearingCounts()
        self._ids = count()

    @property
    def admission(self) -> AdmissionReport:
        return AdmissionReport(8, self.counts.open, 0, 0)

    def transcript(self, seconds: float, request: TranscriptionRequest) -> Transcript:
        """What a window of this length says."""
        if self.behaviour.text is not None:
            return Transcript(self.behaviour.text, "en", seconds=seconds)
        return expected_transcript(seconds, request)

    def check_room(self) -> None:
        if self.behaviour.full:
            raise Overloaded("every slot is taken", 2.0)

    @asynccontextmanager
    async def run(self, request: TranscriptionRequest) -> AsyncIterator[FakeRecognition]:
        self.check_room()
        self.counts.requests.append(request)
        self.counts.open += 1
        self.counts.max_open = max(self.counts.max_open, self.counts.open)
        try:
            yield FakeRecognition(self, request, f"hear-{next(self._ids)}")
        finally:
            self.counts.open -= 1


class FakeRecognition:
    """One window."""

    def __init__(
        self, model: FakeTranscriptionModel, request: TranscriptionRequest, request_id: str
    ) -> None:
        self.request_id = request_id
        self._model, self._request = model, request
        self._pieces: list[np.ndarray[Any, np.dtype[np.float32]]] = []
        self._partials: asyncio.Queue[Transcript | None] = asyncio.Queue()

    async def feed(
        self, sound: np.ndarray[Any, np.dtype[np.float32]], *, recognize: bool = False
    ) -> None:
        assert sound.dtype == np.float32
        assert sound.ndim == 1
        self._pieces.append(sound)
        if recognize and self._model.has_partials:
            self._partials.put_nowait(known := self._transcript())
            self._model.counts.asked.append(known.seconds)

    async def partials(self) -> AsyncGenerator[Transcript, None]:
        may_know = self._model.behaviour.may_know
        while (transcript := await self._partials.get()) is not None:
            if may_know is not None:
                await may_know.wait()
            yield transcript

    async def finish(self) -> Transcript:
        behaviour, counts = self._model.behaviour, self._model.counts
        if behaviour.may_finish is not None:
            await behaviour.may_finish.wait()
        if behaviour.error is not None:
            raise behaviour.error
        counts.finished += 1
        counts.sounds.append(np.concatenate(self._pieces or [np.zeros(0, np.float32)]))
        self._partials.put_nowait(None)
        return self._transcript()

    def _transcript(self) -> Transcript:
        seconds = sum(map(len, self._pieces)) / SPEECH_RATE
        return self._model.transcript(seconds, self._request)
