"""Messages between the orchestrator and a stage process.

Downwards: Register, Extend, Abort, Credit, Ping, DrainStage. Upwards: Ready or CannotStart,
StepMeasured, Output, Failed, Aborted, Pong, Drained. Between stages only chunks flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import StageInput
from cantata.contract.process.steps import ForwardCost, ReuseReport, StepCost, StepReport


@dataclass(frozen=True, slots=True)
class Register:
    """Make room for this request. Sent to all stages at once, the last stage first, so that no
    chunk reaches a stage that does not know its request."""

    request_id: str
    payload: StageInput | None
    batch: bool
    playout_deadline_s: float | None = None
    """As in `PipelineRequest`."""
    stretch: float = 1.0
    """As in `PipelineRequest`."""


@dataclass(frozen=True, slots=True)
class Extend:
    """More input for a request that was registered before its text was complete."""

    request_id: str
    payload: StageInput
    final: bool
    """No more input follows."""


@dataclass(frozen=True, slots=True)
class Abort:
    """Free these requests and answer `Aborted`, whether they are known or not."""

    request_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Credit:
    """The listener took `samples` more; a stage that makes sound may produce that many more."""

    request_id: str
    samples: int


@dataclass(frozen=True, slots=True)
class Ping:
    """Answer `Pong` with the same number."""

    number: int


@dataclass(frozen=True, slots=True)
class DrainStage:
    """Finish registered requests, accept no others, answer `Drained`, exit."""


ToStage = Register | Extend | Abort | Credit | Ping | DrainStage


@dataclass(frozen=True, slots=True)
class StageCapacity:
    """What a stage reports about its size when it is ready."""

    slots: int
    """Most requests that it holds at the same time."""
    frame_period_s: float | None
    """Seconds of sound in one frame. None: the stage makes no frames, and no listener waits for its
    next step."""
    sample_rate: int | None = None
    """Sample rate in Hz. None: the stage makes no sound."""
    channels: int = 1
    max_batch_frames: int | None = None
    """Most frames in one step. None: one per request."""
    batches_requests: bool = True
    """Whether requests share a step. Otherwise its fixed cost is each request's own."""
    credit_samples: int = 0
    """Most samples per channel that the stage makes for a listener that reads nothing."""
    state_bytes: int = 0
    """Memory of all slots' streaming state; 0: small, or unknown."""


@dataclass(frozen=True, slots=True)
class Ready:
    """The stage has loaded its model and accepts requests."""

    capacity: StageCapacity


@dataclass(frozen=True, slots=True)
class CannotStart:
    """The stage cannot be built as it is deployed; its process exits now."""

    why: str


@dataclass(frozen=True, slots=True)
class StepMeasured:
    """The current cost of the stage's steps. Sent when it changes."""

    cost: StepCost | ForwardCost


@dataclass(frozen=True, slots=True)
class Output:
    """New chunks for the api, one message per step."""

    chunks: tuple[Chunk[Payload], ...]


@dataclass(frozen=True, slots=True)
class Failed:
    """This request cannot be finished; the stage has freed it."""

    request_id: str
    error: CantataError


@dataclass(frozen=True, slots=True)
class Aborted:
    """The stage holds nothing for these requests."""

    request_ids: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Pong:
    """The stage is alive; what it holds."""

    number: int
    counts: Mapping[str, int]
    """Requests, slots, queued chunks, KV blocks, ...; all zero when idle."""
    steps: StepReport
    held: tuple[str, ...] = ()
    """Ids of the requests that it holds."""
    reuse: ReuseReport | None = None
    """Figures of a stage that caches results; None for others."""


@dataclass(frozen=True, slots=True)
class Drained:
    """The stage is empty; its process exits now."""


FromStage = Ready | CannotStart | StepMeasured | Output | Failed | Aborted | Pong | Drained
