"""What the orchestrator and a stage process say to each other.

Downwards: Register, Extend, Abort, Credit, Ping, Drain. Upwards: Ready, Measured, Output, Failed,
Aborted, Pong, Drained. Between stages only chunks flow; nothing flows backwards but aborts and
credits.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cantata.contract.chunks import PcmChunk
from cantata.contract.errors import CantataError
from cantata.contract.request import Payload
from cantata.contract.steps import StepCost, StepReport


@dataclass(frozen=True, slots=True)
class Register:
    """Make room for this request. Sent to all stages at once, the last stage first, so that no
    chunk reaches a stage that has not heard of its request."""

    request_id: str
    payload: Payload | None
    batch: bool
    runs_dry_s: float | None = None
    """As `PipelineRequest`'s."""


@dataclass(frozen=True, slots=True)
class Extend:
    """More input of a request whose text was still arriving when it was registered."""

    request_id: str
    payload: Payload
    final: bool
    """Nothing follows."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Forget these requests and answer `Aborted`, whether they are known or not."""

    request_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Credit:
    """The listener took `samples` more; the last stage may produce as many again."""

    request_id: str
    samples: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Answer `Pong` with the same number."""

    number: int


@dataclass(frozen=True, slots=True)
class Drain:
    """Finish what is registered, take nothing new, answer `Drained`, end."""


ToStage = Register | Extend | Abort | Credit | Ping | Drain


@dataclass(frozen=True, slots=True)
class StageCapacity:
    """What a stage says of itself when it is ready."""

    slots: int
    """Requests that it holds at the same time."""
    frame_period_s: float
    """Seconds of sound in one frame."""
    sample_rate: int | None = None
    """Hz; only the last stage knows it."""
    channels: int = 1
    max_batch_frames: int | None = None
    """Frames in one step at most; None: one of every request."""
    credit_samples: int = 0
    """Samples per channel that the last stage makes ahead of a listener that takes none."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The stage has loaded its model and takes requests."""

    capacity: StageCapacity


@dataclass(frozen=True, slots=True)
class Measured:
    """What the stage's steps take of late. Sent when it has changed."""

    cost: StepCost


@dataclass(frozen=True, slots=True)
class Output:
    """The last stage's new PCM, one message per step."""

    chunks: tuple[PcmChunk, ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """This request cannot be finished; the stage has freed it."""

    request_id: str
    error: CantataError


@dataclass(frozen=True, slots=True)
class Aborted:
    """None of these requests holds anything in this stage any more."""

    request_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pong:
    """The stage is alive and holds this much."""

    number: int
    counts: Mapping[str, int]
    """What is held: requests, slots, queued chunks, KV blocks... All zero when idle."""
    steps: StepReport


@dataclass(frozen=True, slots=True)
class Drained:
    """Nothing is left; the process ends now."""


FromStage = Ready | Measured | Output | Failed | Aborted | Pong | Drained
