"""What a model that turns speech into text provides: windows of sound in, transcripts out.

Letters: N samples at `SPEECH_RATE`.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import PipelineRequest
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest, TranscriptUpdate

Sound = NDArray[np.float32]
"""[N] mono at `SPEECH_RATE`, in -1..1."""


@dataclass(frozen=True, slots=True)
class SpeechWindow:
    """What a recognition stage gives its model."""

    inputs: Any
    """The stage input that the builder made."""
    samples: Sound
    """What has come so far."""


class SpeechRecognizer(Protocol):
    """The model of a recognition stage: `factory(checkpoint, device, dtype)`."""

    max_window_s: float
    """Seconds of the longest window."""
    gains_by_batching: bool
    """Whether windows together take less time than one after the other, and have the same words. If
    not, each is recognized by itself."""

    def recognize(
        self, windows: Sequence[SpeechWindow]
    ) -> Sequence[TranscriptUpdate | CantataError]:
        """The words of each window, or why there are none. If this raises, each window is tried
        again by itself, and those that raise fail."""
        ...


class TranscriptReader(Protocol):
    """Turns what a pipeline without a recognition stage sends of one window into its transcript."""

    def read(self, payload: Payload) -> None:
        """Take the next payload of the builder's `output`."""
        ...

    def end(self) -> Transcript:
        """The transcript, once all have been taken."""
        ...


class TranscriptionBuilder(Protocol):
    """Turns windows of speech into stage inputs, in the api process.

    Light to load (no weights) and safe to call from a worker thread.
    """

    @property
    def languages(self) -> tuple[str, ...]:
        """BCP 47 tags of what it understands, the most usual first. One: it knows no other."""
        ...

    @property
    def translates(self) -> bool:
        """Whether it can write other languages in English."""
        ...

    @property
    def has_timestamps(self) -> bool:
        """Whether it knows when each word was spoken."""
        ...

    @property
    def max_window_s(self) -> float:
        """Seconds of the longest window."""
        ...

    @property
    def stage(self) -> str | None:
        """The recognition stage, which takes sound while it arrives. None: there is none, and
        `build` gets whole windows."""
        ...

    @property
    def output(self) -> str:
        """The `stage.port` whose payloads go to the client."""
        ...

    @property
    def warm_up(self) -> Sound:
        """A window that is recognized and discarded before the model is ready."""
        ...

    def build(
        self, request_id: str, request: TranscriptionRequest, sound: Sound | None
    ) -> PipelineRequest:
        """Stage inputs for a window.

        Args:
            sound: all of it; None if there is a recognition stage, which gets it piece by piece.

        Raises:
            InvalidRequest: an option cannot be served.
        """
        ...

    def reader(self) -> TranscriptReader | None:
        """A reader for one window; None if there is a recognition stage, which sends
        transcripts."""
        ...
