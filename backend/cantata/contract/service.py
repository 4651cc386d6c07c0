"""The interface between the api and whatever runs the models. The api never imports the pipeline.

Every model has one entry point, `ServedModel.run`. A run is entered (checks, admission,
registration with every stage), iterated (events as they are made) and left (if it has not
finished, every stage is told to abort it, and leaving waits until all have).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Generic, Protocol, TypeVar

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.request import ReferenceAudio, SpeechRequest, Voice
from cantata.contract.process.messages import ReuseReport, StepReport

TEXT, ADMIT = "text", "admit"
"""Milestones of utterances and answers: the text was read, the request was admitted."""

E = TypeVar("E")
Read = TypeVar("Read", contravariant=True)
Asked = TypeVar("Asked", contravariant=True)
Opened = TypeVar("Opened", covariant=True)

Samples = NDArray[np.float32]
"""[N, C] samples, nominally in -1..1."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """When some characters of the client's text are heard."""

    text_start: int
    text_end: int
    """Characters [text_start, text_end) of the request's text, counted by code point."""
    start_s: float
    end_s: float
    """Seconds from the utterance's first sample."""


@dataclass(frozen=True, slots=True)
class SpeechChunk:
    """New sound of an utterance, and newly known word times."""

    samples: Samples
    words: tuple[SpokenWord, ...] = ()
    """New word times, in order. Each word is sent once, with its own first samples or earlier.
    Empty for models without word times."""
    milestones: tuple[Milestone, ...] = ()
    """Milestones of the stages that made it, if it is the first chunk of its pipeline request."""


@dataclass(frozen=True, slots=True)
class StageReport:
    model: str
    stage: str
    pid: int
    """Process id, also of a process that has died; 0 if none was started yet."""
    alive: bool
    startup_s: float
    """Seconds from spawn to readiness; 0 while it is loading."""
    rss_bytes: int
    counts: Mapping[str, int] = field(default_factory=dict)
    """What the stage holds, by name. All zero when idle."""
    steps: StepReport | None = None
    """None while it is loading or down."""
    state_bytes: int = 0
    """Memory of all slots' streaming state; 0: small, or unknown."""
    reuse: ReuseReport | None = None
    """Figures of a stage that caches results; None for others."""
    restarts: int = 0
    """Restarts of the stage's process since the server's start, including failed attempts."""
    last_death: str | None = None
    """How its process ended the last time, if it did."""
    trouble: str | None = None
    """A problem that an operator should look at."""
    replica: str = ""
    """Address of the replica that the stage belongs to; empty: this server."""
    host: str = ""
    """Address of the stage host that runs the stage; empty: it runs where its pipeline does."""
    unloaded: bool = False
    """Its process was ended because nobody used the model; the next request starts it."""


@dataclass(frozen=True, slots=True)
class AdmissionReport:
    places: int
    """Requests that can play without gaps, by the latest measurements."""
    running: int
    waiting: int
    """Live requests in the queue."""
    waiting_batch: int
    """File renders that wait for places that no live request needs."""
    refused: Mapping[str, int] = field(default_factory=dict)
    """Live requests rejected since the start, by reason."""
    admitted: Mapping[str, int] = field(default_factory=dict)
    """Requests admitted since the start: `live`, `batch`."""
    slots: int = 0
    """Requests that every stage has memory for."""
    slots_in_use: int = 0
    """Requests that use the stages' memory: a request between two pieces has a place but no
    slot."""
    quarantined: int = 0
    """Requests that are rejected because they ended a stage process or a replica twice, since the
    start."""
    retry_after_s: float = 1.0
    """Roughly when a request that is rejected now would get its turn."""


class RunObserver(Protocol[Read]):
    """Follows a run as it is read. Metrics and admission are observers."""

    def on_wait(self) -> None:
        """The reader asks for the next event."""
        ...

    def on_event(self, event: Read) -> None:
        """An event has arrived; the reader gets it after the observers."""
        ...

    def on_end(self) -> None: ...


@dataclass(frozen=True, slots=True)
class Run(Generic[E]):
    """A request that a model works on. Iterating over it gives its events once, as they are made.
    Sound that is not taken stops the production of more.

    Raises:
        RequestFailed: a stage could not finish it (`ChunkTimeout`: no sign of it in time).
        StageDied: a process that held it died.
    """

    request_id: str
    """The id under which the stages know the request."""
    milestones: tuple[Milestone, ...]
    """Steps that were done before the stages got the request."""
    events: AsyncIterator[E]
    _observers: list[RunObserver[E]] = field(default_factory=list, init=False)

    def observe(self, observer: RunObserver[E]) -> None:
        self._observers.append(observer)

    def __aiter__(self) -> AsyncIterator[E]:
        return self

    async def __anext__(self) -> E:
        for observer in self._observers:
            observer.on_wait()
        try:
            event = await anext(self.events)
        except StopAsyncIteration:
            for observer in self._observers:
                observer.on_end()
            raise
        for observer in self._observers:
            observer.on_event(event)
        return event


class Utterance(Run[SpeechChunk]):
    """A text that is being spoken. No chunk is empty: each has samples, words or both."""

    __slots__ = ()


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    address: str
    ready: bool
    """Whether it is connected and its models accept requests."""
    draining: bool
    """Whether it finishes its running requests and accepts no new ones."""
    streams: int
    """This server's open requests on it."""
    lost: int
    """How often the link was lost since the server's start."""
    routed: Mapping[str, int] = field(default_factory=dict)
    """Requests that this server has sent to it since its start, by model."""
    trouble: str | None = None
    """Why it takes no requests, or none for some model."""
    admissions: Mapping[str, AdmissionReport] = field(default_factory=dict)
    """Admission of its models, by name, over all servers, as last reported."""


class ServedModel(Protocol[Asked, Opened]):
    """One model, ready to serve requests of one kind."""

    @property
    def name(self) -> str:
        """The id under which clients ask for the model."""
        ...

    @property
    def admission(self) -> AdmissionReport: ...

    def check_room(self) -> None:
        """Reject a live request that there is no room for; takes microseconds. `run` may still
        queue or reject a request that passes.

        Raises:
            Overloaded: there is none; says when to try again.
        """
        ...

    def run(self, request: Asked) -> AbstractAsyncContextManager[Opened]:
        """Serve a request.

        Leaving the context, at the end as well as on an error or a cancellation, returns only
        when every stage has freed the request.

        Raises:
            InvalidRequest: the text, a part or an option cannot be served (on entering).
            Overloaded: no place in time, or it would be done too late (on entering).
            Quarantined: the request has ended a stage process twice (on entering).
            StageDied: the model is not running (on entering).
        """
        ...


class SpeechModel(ServedModel[SpeechRequest, Utterance], Protocol):
    @property
    def voices(self) -> tuple[Voice, ...]:
        """The model's voices, the default first."""
        ...

    @property
    def sample_rate(self) -> int:
        """Sample rate in Hz. Known once the service is ready."""
        ...

    @property
    def channels(self) -> int: ...

    @property
    def max_input_characters(self) -> int:
        """The longest text that one utterance may have."""
        ...

    @property
    def sampled(self) -> bool:
        """Whether requests without a temperature are random, so that the seed matters."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    def get_voice(self, name: str | None) -> Voice:
        """The voice with this id, name or alias; None is the default voice. Raises VoiceNotFound:
        none has it; the message lists the valid ids."""
        ...

    async def phonemize(self, text: str, language: str) -> str:
        """The phones that the model reads a text as, with the capability `phonemizes`.

        Raises:
            InvalidRequest: the model, or the server that it runs on, does not say, or the text or
                its language is not read.
        """
        ...

    async def may_be_same_speaker(
        self, first: ReferenceAudio, second: ReferenceAudio
    ) -> bool | None:
        """Whether two recordings may be of one speaker. None: the model, or the server that it
        runs on, does not tell."""
        ...

    def run(
        self, request: SpeechRequest, *, more_text: AsyncIterator[str] | None = None
    ) -> AbstractAsyncContextManager[Utterance]:
        """Speak one text; `request.voice` is one of `voices`' ids. `[pause 1.5s]` in the text is
        that much silence (see `cantata.text`), unless the text is still arriving or the model
        makes pauses itself.

        Args:
            more_text: the rest of `request.text`, in pieces as they arrive; speaking begins with
                the first words. For models with the capability `open_text`.
        """
        ...


class SpeechService(Protocol):
    """All models of one server."""

    @property
    def models(self) -> Mapping[str, SpeechModel]:
        """All models by name, in the order of the configuration."""
        ...

    @property
    def default_model(self) -> str:
        """Name of the model for requests that name none."""
        ...

    @property
    def ready(self) -> bool:
        """Whether every model accepts requests."""
        ...

    @property
    def trouble(self) -> str: ...

    def get_model(self, name: str) -> SpeechModel:
        """The model of this name; OpenAI's names of speech models mean the default model. Raises
        ModelNotFound: none has it; the message lists the valid names."""
        ...

    async def collect_stage_reports(self) -> list[StageReport]:
        """One report per stage process, available also while stages load or are down."""
        ...

    def get_replica_reports(self) -> list[ReplicaReport]:
        """One report per replica; none if this server's models run on its own machine."""
        ...

    async def start(self) -> None:
        """Start all stages; returns when the service is ready.

        Raises:
            ConfigError: a model cannot be served as configured.
            StageDied: a stage ended before it was ready.
        """
        ...

    async def stop(self) -> None:
        """End every utterance and every process; safe to call at any time and twice."""
        ...
