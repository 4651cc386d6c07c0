"""The interface of a stage inside its process: one object, driven by one loop, without I/O of its
own."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.request import StageInput
from cantata.contract.process.messages import ForwardCost, ReuseReport, StageCapacity


@dataclass(frozen=True, slots=True)
class StepResult:
    """The output of one step. A request whose final chunk or failure is in it is already freed."""

    chunks: Sequence[Chunk[Payload]] = ()
    failures: Sequence[tuple[str, CantataError]] = ()
    cost: ForwardCost | None = None
    """Cost of a denoiser's forwards, if it has changed enough to report."""


Working = Callable[[], AbstractContextManager[None]]
"""Marks that a thread is in a call that others wait for."""


class Stage(Protocol):
    """One stage kind over one model.

    Called by a single thread. A fault of one request is returned as a failure of that request;
    an exception out of any method means that the stage is broken and its process exits.
    """

    @property
    def capacity(self) -> StageCapacity:
        """The stage's size, fixed once it is built."""
        ...

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Make this request's state; `batch`, `playout_deadline_s` and `stretch` are as
        `PipelineRequest`'s.

        Raises:
            CantataError: the request is rejected; nothing is held for it.
        """
        ...

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Take more input for a request that was added with an open end; `final` ends it. Unknown
        requests (which have ended) are ignored.

        Raises:
            CantataError: it is rejected; nothing is held for the request any more.
        """
        ...

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Take chunks from upstream. Chunks of unknown (aborted) requests are dropped."""
        ...

    def credit(self, request_id: str, samples: int) -> None:
        """Let the request produce `samples` more; ignored by stages that make no sound."""
        ...

    def abort(self, request_id: str) -> None:
        """Free everything held for the request; unknown ids are ignored."""
        ...

    def has_work(self) -> bool:
        """Whether `step` has something to do now."""
        ...

    def get_due_in_s(self) -> float | None:
        """Seconds until `has_work` turns true even if nothing arrives; None: it stays as it is.
        Asked while `has_work()` is false."""
        ...

    def step(self) -> StepResult:
        """Run one batch. Called only while `has_work()`."""
        ...

    def get_counts(self) -> Mapping[str, int]:
        """What the stage holds now, by name; all zero when idle."""
        ...

    def start_thread(self, working: Working) -> int | None:
        """Do the work of `step` in a thread of the stage's own, if the stage supports that. Without
        this call, it works inside `step`.

        Returns:
            A descriptor (eventfd) that is readable once a step can report what the thread has done;
            None: it always works inside `step`.
        """
        ...

    @property
    def reuse(self) -> ReuseReport | None:
        """Figures of a stage that caches results; None for others."""
        ...

    def close(self) -> None:
        """Release the model, in a process that goes on. The object is not used again."""
        ...
