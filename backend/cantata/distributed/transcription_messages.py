"""The messages of edges and replicas about speech that is written down."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.distributed.messages import FrameKind


@dataclass(frozen=True, slots=True)
class TranscribeOrder:
    """A window of speech to be recognised; its sound follows in `MoreSound`, until one is final."""

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
    """What has come so far is to be recognised soon."""
    final: bool = False
    """No sound follows."""


@dataclass(frozen=True, slots=True)
class WindowTranscript:
    """What a window says; it replaces what was sent before."""

    transcript: Transcript
    final: bool = False
    """It covers all of the window; none follows."""


EVENTS: Mapping[int, type[WindowTranscript]] = {FrameKind.TRANSCRIPT: WindowTranscript}
