"""What the api asks of the engine. The api imports this and never the engine itself.

The life of an utterance: `speak` is entered (admission, text checks, registration with every
stage), iterated (new samples as they are made), and left (the abort reaches every stage and is
awaited, whatever the reason for leaving).
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import AbstractAsyncContextManager
from dataclasses import dataclass, field
from typing import Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.capabilities import Capabilities
from cantata.contract.data.chunks import Milestone
from cantata.contract.data.request import SpeechRequest, Voice
from cantata.contract.process.steps import ReuseReport, StepReport

TEXT, ADMIT = "text", "admit"
"""Milestones of every utterance: its text was read, it was admitted."""

Samples = NDArray[np.float32]
"""[N, C], nominally in -1..1."""


@dataclass(frozen=True, slots=True)
class SpokenWord:
    """When some characters of the caller's text are heard."""

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
    """In order. Each word is sent once, with its own first samples or earlier. Empty for models
    without word times."""
    milestones: tuple[Milestone, ...] = ()
    """Of the stages that made it, if it is the first of its pipeline request."""


@dataclass(frozen=True, slots=True)
class StageReport:
    """The current state of one stage process."""

    model: str
    stage: str
    pid: int
    """Of the process, or of the one that died; 0 when none was started yet."""
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
    """Of a stage that keeps results."""
    restarts: int = 0
    """Of the stage's process since the server's start, failed attempts too."""
    last_death: str | None = None
    """How its process ended the last time, if it did."""
    trouble: str | None = None
    """What an operator should look at."""
    replica: str = ""
    """Address of the replica that it belongs to; empty: of this server."""
    host: str = ""
    """Address of the stage host that runs it; empty: it runs where its pipeline does."""


@dataclass(frozen=True, slots=True)
class AdmissionReport:
    """The current state of a model's admission."""

    places: int
    """Requests that may run: as many as play without gaps, by the latest measurements."""
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
    """Requests that the stages hold: a request between two pieces has a place but no slot."""
    quarantined: int = 0
    """Requests that are rejected because they ended a stage process, or a replica, twice, since the
    start."""
    retry_after_s: float = 1.0
    """When a request that is rejected now would about get its turn."""


@dataclass(frozen=True, slots=True)
class Utterance:
    """One request that is being spoken. Iterating over it gives its chunks, once.

    Raises:
        RequestFailed: a stage could not finish it (`ChunkTimeout`: no chunk in time).
        StageDied: a process that held it died.
    """

    request_id: str
    """The id by which the stages know it."""
    milestones: tuple[Milestone, ...]
    """What was done before it was handed to the stages: `TEXT`, `ADMIT`."""
    chunks: AsyncIterator[SpeechChunk]
    """New samples as they are made: delta, never cumulative. Untaken chunks stop the production
    of more."""

    def __aiter__(self) -> AsyncIterator[SpeechChunk]:
        return self.chunks


@dataclass(frozen=True, slots=True)
class ReplicaReport:
    """What a server knows of one of its replicas."""

    address: str
    ready: bool
    """It is connected, and its models accept requests."""
    draining: bool
    """It ends what it speaks and takes nothing new."""
    streams: int
    """Of this server, open there now."""
    lost: int
    """How often its link was lost, since the server's start."""
    routed: Mapping[str, int] = field(default_factory=dict)
    """Requests that this server has ordered there since its start, by model."""
    trouble: str | None = None
    """What is wrong with it: why it takes no requests, or none for some model."""
    admissions: Mapping[str, AdmissionReport] = field(default_factory=dict)
    """Of its models, by name, all servers' requests counted; as it told last."""


class ServedModel(Protocol):
    """One model, ready to speak."""

    @property
    def name(self) -> str:
        """The id by which clients ask for it."""
        ...

    @property
    def voices(self) -> tuple[Voice, ...]:
        """Its voices, the default first."""
        ...

    @property
    def sample_rate(self) -> int:
        """Hz. Known once the service is ready."""
        ...

    @property
    def channels(self) -> int: ...

    @property
    def max_input_characters(self) -> int:
        """The longest text that one utterance may have."""
        ...

    @property
    def sampled(self) -> bool:
        """Whether requests that set no temperature are random, so that the seed matters."""
        ...

    @property
    def capabilities(self) -> Capabilities: ...

    @property
    def admission(self) -> AdmissionReport:
        """Running and waiting requests."""
        ...

    def voice(self, name: str | None) -> Voice:
        """The voice with this id, name or alias; None is the default voice.

        Raises:
            VoiceNotFound: none has it; the message lists the valid ids.
        """
        ...

    def check_room(self) -> None:
        """Reject a live request if the queue has no room; takes microseconds. `speak` may still
        queue or reject a request that passes.

        Raises:
            Overloaded: the queue is full.
        """
        ...

    def speak(
        self,
        request: SpeechRequest,
        *,
        batch: bool = False,
        more_text: AsyncIterator[str] | None = None,
    ) -> AbstractAsyncContextManager[Utterance]:
        """Speak one text; `request.voice` is one of `voices`' ids. `[pause 1.5s]` in the text is
        that much silence (see `cantata.markup`), unless the text is still arriving or the model
        makes pauses itself.

        Leaving the context, at the end as well as on an error or a cancellation, returns only
        when every stage has freed the request.

        Args:
            request: what to say and how.
            batch: a file render, which yields to live streams.
            more_text: the rest of `request.text`, in pieces as they arrive; speaking begins with
                the first words. For models with the capability `open_text`.

        Raises:
            Overloaded: at capacity (on entering).
            InvalidRequest: the text or an option cannot be served (on entering).
        """
        ...


class SpeechService(Protocol):
    """Every model of one server."""

    @property
    def models(self) -> Mapping[str, ServedModel]:
        """By name, in the order of the configuration."""
        ...

    @property
    def default_model(self) -> str:
        """For requests that name no model."""
        ...

    @property
    def ready(self) -> bool:
        """Whether every model accepts requests."""
        ...

    @property
    def trouble(self) -> str:
        """Why it is not ready, for a person."""
        ...

    def model(self, name: str) -> ServedModel:
        """The model of this name; OpenAI's names of speech models mean the default model.

        Raises:
            ModelNotFound: none has it; the message lists the valid names.
        """
        ...

    async def stage_reports(self) -> list[StageReport]:
        """One report per stage process, answered also while stages load or are down."""
        ...

    def replica_reports(self) -> list[ReplicaReport]:
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
