"""The messages of edges and replicas.

An edge opens a stream with a request. The replica answers `OPENED` when the work is admitted, then
sends what is made. Once it holds nothing of the work any more, it ends the stream, with a `Fault`
if there was one. The edge ends its side to cancel. Times are ages: the machines' clocks differ.
"""

from __future__ import annotations

import time
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from enum import IntEnum

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image, Milestone, Progress
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.data.request import SpeechRequest
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.image_service import DrawingEvent
from cantata.contract.service import AdmissionReport, Samples, SpeechChunk, SpokenWord, StageReport
from cantata.distributed.link.frames import FIRST_OF_USER


class FrameKind(IntEnum):
    """The kind of a frame; its body is of the class that is named below it."""

    ANNOUNCE = FIRST_OF_USER
    """`Advertisement`, on no stream: what a replica serves, once it is ready."""
    ASK_REPORTS = FIRST_OF_USER + 1
    """Empty: an edge asks for `REPORTS`, the only answer on this stream."""
    REPORTS = FIRST_OF_USER + 2
    """`Reports`"""
    SPEAK = FIRST_OF_USER + 3
    """`SpeakRequest`"""
    TEXT = FIRST_OF_USER + 4
    """`MoreText`: of an open text."""
    OPENED = FIRST_OF_USER + 5
    """`Opened`"""
    SOUND = FIRST_OF_USER + 6
    """`SoundMessage`"""
    ANSWER = FIRST_OF_USER + 7
    """`AnswerRequest`"""
    ANSWERING = FIRST_OF_USER + 8
    """`Answering`"""
    TEXT_DELTA = FIRST_OF_USER + 9
    """`contract.chat_service.AnswerDelta`"""
    TEXT_END = FIRST_OF_USER + 10
    """`contract.chat_service.TextEnd`"""
    DRAW = FIRST_OF_USER + 11
    """`DrawRequest`"""
    DRAWING = FIRST_OF_USER + 12
    """`DrawingBegun`"""
    PROGRESS = FIRST_OF_USER + 13
    """`contract.data.chunks.Progress`"""
    IMAGE = FIRST_OF_USER + 14
    """`contract.data.chunks.Image`"""
    CALL_STARTED = FIRST_OF_USER + 15
    """`contract.data.chat.CallStarted`"""
    CALL_ARGUMENTS = FIRST_OF_USER + 16
    """`contract.data.chat.CallArguments`"""
    THOUGHT = FIRST_OF_USER + 17
    """`contract.data.chat.Thought`"""
    TRANSCRIBE = FIRST_OF_USER + 18
    """`TranscribeRequest`"""
    WINDOW = FIRST_OF_USER + 19
    """`WindowOpened`"""
    MORE_SOUND = FIRST_OF_USER + 20
    """`MoreSound`: of a window of speech."""
    TRANSCRIPT = FIRST_OF_USER + 21
    """`WindowTranscript`"""


@dataclass(frozen=True, slots=True)
class Age:
    """A milestone, by its age at the moment of sending."""

    step: str
    age_s: float


def to_ages(milestones: tuple[Milestone, ...]) -> tuple[Age, ...]:
    """Milestones as ages, for a message that is sent now."""
    now = time.monotonic()
    return tuple(Age(milestone.step, now - milestone.at_s) for milestone in milestones)


def to_milestones(ages: tuple[Age, ...]) -> tuple[Milestone, ...]:
    """Ages as milestones, for a message that has just arrived. Its travel time counts for the step
    after them."""
    now = time.monotonic()
    return tuple(Milestone(age.step, now - age.age_s) for age in ages)


@dataclass(frozen=True, slots=True)
class SpeakRequest:
    work_id: str
    """Begins the id of the work at the replica, so that logs of both belong together."""
    model: str
    request: SpeechRequest
    batch: bool = False
    open_text: bool = False
    """The text continues in `MoreText`, until one is final."""
    repeated: bool = False
    """Its listener has the beginning from another replica, and may have nothing left to play."""

    @classmethod
    def of(
        cls, work_id: str, model: str, request: SpeechRequest, *, open_text: bool
    ) -> SpeakRequest:
        """As it is sent; `batch` has had a place of its own since before requests had it."""
        return cls(work_id, model, replace(request, batch=False), request.batch, open_text)

    @property
    def wanted(self) -> SpeechRequest:
        """The request as it has arrived."""
        return replace(self.request, batch=self.batch)


@dataclass(frozen=True, slots=True)
class MoreText:
    """A piece of an open text."""

    text: str
    final: bool = False
    """No text follows, nor is there any in this message."""


@dataclass(frozen=True, slots=True)
class Opened:
    """The work has a place."""

    request_id: str
    """At the replica."""
    milestones: tuple[Age, ...]


@dataclass(frozen=True, slots=True)
class SoundMessage:
    """`SpeechChunk`, with ages."""

    samples: Samples
    words: tuple[SpokenWord, ...] = ()
    milestones: tuple[Age, ...] = ()

    @classmethod
    def of(cls, chunk: SpeechChunk) -> SoundMessage:
        return cls(chunk.samples, chunk.words, to_ages(chunk.milestones))

    @property
    def chunk(self) -> SpeechChunk:
        """The chunk, for a message that has just arrived."""
        return SpeechChunk(self.samples, self.words, to_milestones(self.milestones))


@dataclass(frozen=True, slots=True)
class ModelState:
    """One model's places at one replica."""

    admission: AdmissionReport
    free: int
    """Orders that would be admitted now."""
    ordered: int
    """Live requests of this edge that the replica has seen, since the link began."""


@dataclass(frozen=True, slots=True)
class ReplicaState:
    """What a replica reports with each heartbeat."""

    ready: bool = False
    """Every model accepts requests."""
    draining: bool = False
    """It finishes what it speaks and takes nothing new."""
    models: Mapping[str, ModelState] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Reports:
    """One for each stage process of a replica."""

    stages: tuple[StageReport, ...]


@dataclass(frozen=True, slots=True)
class DrawRequest:
    work_id: str
    model: str
    options: ImageRequest
    """Without a deadline."""
    waits_s: float | None = None
    """How much longer its caller waits."""

    @classmethod
    def of(cls, work_id: str, model: str, request: ImageRequest) -> DrawRequest:
        waits_s = None if request.deadline_s is None else request.deadline_s - time.monotonic()
        return cls(work_id, model, replace(request, deadline_s=None), waits_s)

    @property
    def request(self) -> ImageRequest:
        if self.waits_s is None:
            return self.options
        return replace(self.options, deadline_s=time.monotonic() + self.waits_s)


@dataclass(frozen=True, slots=True)
class DrawingBegun:
    """The work was admitted; fields as of `Drawing`."""

    request_id: str
    width: int
    height: int
    steps: int
    prompt_tokens: int
    reference_tokens: int


DRAWING_EVENTS: Mapping[int, type[DrawingEvent]] = {
    FrameKind.THOUGHT: Thought,
    FrameKind.PROGRESS: Progress,
    FrameKind.IMAGE: Image,
}


def get_kind(event: DrawingEvent) -> FrameKind:
    """Under which it is sent."""
    return next(FrameKind(kind) for kind, one in DRAWING_EVENTS.items() if isinstance(event, one))


@dataclass(frozen=True, slots=True)
class TranscribeRequest:
    """A window of speech to be recognized; its sound follows in `MoreSound`, until one is final."""

    work_id: str
    model: str
    request: TranscriptionRequest


@dataclass(frozen=True, slots=True)
class WindowOpened:
    """The work has a place."""

    request_id: str
    """At the replica."""


@dataclass(frozen=True, slots=True)
class MoreSound:
    """A piece of a window's sound."""

    samples: NDArray[np.float32]
    """[N] as of `contract.data.transcripts.SoundPiece`."""
    recognize: bool = False
    """What has come so far is to be recognized soon."""
    final: bool = False
    """No sound follows."""


@dataclass(frozen=True, slots=True)
class WindowTranscript:
    """What a window says; it replaces what was sent before."""

    transcript: Transcript
    final: bool = False
    """It covers all of the window; none follows."""


TRANSCRIPT_EVENTS: Mapping[int, type[WindowTranscript]] = {FrameKind.TRANSCRIPT: WindowTranscript}
