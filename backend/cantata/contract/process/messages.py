"""Messages between the orchestrator and a stage process, and the stage's report on its steps.

Downwards: LoadNow, Register, Extend, Abort, Credit, Ping, DrainStage. Upwards: MemoryNeeds (from a
stage on a GPU, which then waits for LoadNow), Ready or CannotStart, StepMeasured, Output, Failed,
Aborted, Pong, Drained. Between stages only chunks flow.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import StageInput


@dataclass(frozen=True, slots=True)
class StepCost:
    """The time of a step that makes n frames, over all its requests: a + b n."""

    fixed_s: float
    """a, in seconds."""
    frame_s: float
    """b, in seconds per frame."""

    def seconds(self, frames: int) -> float:
        """The time of a step of this size."""
        return self.fixed_s + self.frame_s * frames


@dataclass(frozen=True, slots=True)
class ForwardCost:
    """The time of a forward: a + b tokens + c pairs."""

    fixed_s: float
    """a, in seconds."""
    token_s: float
    """b, in seconds per token."""
    pair_s: float
    """c, in seconds per pair."""

    def seconds(self, size: ForwardSize) -> float:
        """The time of a forward of this size."""
        return self.fixed_s + self.token_s * size.tokens + self.pair_s * size.pairs


@dataclass(frozen=True, slots=True)
class Histogram:
    """A histogram of measurements since the stage process began."""

    bounds: tuple[float, ...]
    """Upper bounds of the buckets, ascending; larger values have a bucket of their own."""
    counts: tuple[int, ...]
    """One for each bucket, one more than there are bounds."""
    total: float


@dataclass(frozen=True, slots=True)
class StepReport:
    """Histograms of the steps of one stage process."""

    seconds: Histogram
    """Duration of each step."""
    batch: Histogram
    """Number of requests that each step produced output for; 0 if it only read prompts."""


@dataclass(frozen=True, slots=True)
class ReuseReport:
    """What a stage computed and what it reused, since its process began."""

    encodes: int
    """Inputs that were computed."""
    hits: int
    """Requests whose result was cached."""
    joined: int
    """Requests that shared a computation with another request."""
    kept_bytes: int
    """Bytes of results in the cache now."""


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


@dataclass(frozen=True, slots=True)
class LoadNow:
    """There is memory for what `MemoryNeeds` says: load the model."""


ToStage = Register | Extend | Abort | Credit | Ping | DrainStage | LoadNow


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
class MemoryNeeds:
    """What the stage is going to hold on its device; it loads nothing before `LoadNow`."""

    needs: Mapping[str, int]
    """Bytes, by what takes them."""


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


FromStage = (
    MemoryNeeds | Ready | CannotStart | StepMeasured | Output | Failed | Aborted | Pong | Drained
)
