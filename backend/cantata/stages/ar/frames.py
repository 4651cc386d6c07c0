"""The interface between an AR stage and the engine that makes its frames."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from enum import Enum
from typing import Any, Protocol

from numpy.typing import NDArray

from cantata.stages.ar.talker_step import ServedTalker


class StopReason(Enum):
    """Why a request makes no more frames."""

    END_CODE = "end code"
    LENGTH = "length"
    """It has reached its maximum number of frames."""
    FAULT = "fault"


@dataclass(frozen=True, slots=True)
class NewFrame:
    """One request's output of one step."""

    request_id: str
    values: NDArray[Any]
    """[1, Q] int32 codes or [1, E] float32 latents; meaningless after a fault."""
    ending: StopReason | None
    """None: the request continues."""
    cached_positions: int = 0
    """Of the prompt, read from the prefix cache; counted with a request's first frame."""


@dataclass(frozen=True, slots=True)
class FrameRequest:
    """What an engine is asked to make."""

    request_id: str
    """Not in the engine; or that of a resumable request, which continues after the frames that it
    may make already."""
    prompt_len: int
    """Positions to prefill; 1 to continue: the position of its last frame."""
    max_frames: int
    """Frames after which it ends by length."""
    priority: int
    """Lower goes first."""
    token_ids: Sequence[int] | None = None
    """[prompt_len] that identify its positions; None: placeholders."""
    cache_salt: str | None = None
    """Separates requests whose rows differ and whose placeholders are equal."""
    resumable: bool = False
    """At its end it waits, keeping its memory, to be continued or aborted."""
    computes_all: bool = False
    """No position is read from the prefix cache."""


class FrameEngine(Protocol):
    """Runs requests, one frame per request and step."""

    @property
    def talker(self) -> ServedTalker:
        """The loaded model."""
        ...

    def add(self, request: FrameRequest) -> None:
        """Queue a request, or let a resumable one make more frames."""
        ...

    def abort(self, request_id: str) -> None:
        """Forget a request; unknown ids are fine."""
        ...

    def has_work(self) -> bool:
        """Whether there are requests."""
        ...

    def step(self) -> Sequence[NewFrame]:
        """Make at most one frame per request."""
        ...

    def get_counts(self) -> Mapping[str, int]:
        """What is held now; all zero when idle."""
        ...

    def close(self) -> None:
        """End the engine and free its memory."""
        ...
