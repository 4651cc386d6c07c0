"""What a diffusion stage requires of a model: jobs that advance step by step.

The stage decides which jobs advance next (`scheduling.step_plan`); the model computes one step of
them, in one forward or in several, and may leave out blocks of a step that is close to the one
before (`Skipping`). A job is the model's own state of one picture: its latents, its conditions, its
sigmas. Letters: L tokens, E columns, H height, W width.
"""

from __future__ import annotations

from collections.abc import Collection, Hashable, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, Protocol

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Payload
from cantata.contract.data.errors import CantataError
from cantata.contract.data.forward_size import ForwardSize


class SkipTest(StrEnum):
    """How to tell that a step is close to the last full one."""

    INPUT = "input"
    """The first block's modulated input: its relative changes since the last full step, each
    mapped by a polynomial, add up to no more than the limit."""
    RESIDUAL = "residual"
    """What the first blocks add: its relative change since the last full step is within the
    limit."""
    INTERVAL = "interval"
    """The last full step is fewer steps ago than the limit."""


@dataclass(frozen=True, slots=True)
class Skipping:
    """A rule that each branch of each picture applies by itself.

    A full step computes every block. Another one computes the first and the last blocks, and takes
    what those between them add from the full steps before.
    """

    test: SkipTest
    limit: float
    warmup_steps: int
    """Number of full steps at the beginning, at least 1. The last step is full, too."""
    first_blocks: int = 0
    last_blocks: int = 0
    order: int = 0
    """Order of the Taylor series through the last full steps; 0 uses the last one as it is."""
    coefficients: tuple[float, ...] | None = None
    """Coefficients of the polynomial of `SkipTest.INPUT`, the highest power first. None: the
    model's own."""


class Parallel(StrEnum):
    """How the ranks of a stage share a forward."""

    BRANCHES = "branches"
    """Each branch of a guided picture on a rank of its own; two ranks."""
    ULYSSES = "ulysses"
    """Tokens are shared; in attention, each rank computes its share of the heads."""
    RING = "ring"
    """Tokens are shared; keys and values travel round the ranks."""
    TENSOR = "tensor"
    """Heads and columns of the weights are shared."""


@dataclass(frozen=True, slots=True)
class Ranks:
    """The processes of one stage; torch's collectives work among them when a factory is called.

    Every rank gets the same calls in the same order. So whatever a model raises as a
    `CantataError`, it must raise on all ranks; any other error ends the stage.
    """

    kind: Parallel
    size: int
    rank: int = 0


@dataclass(frozen=True, slots=True)
class Hooked:
    """Uses another library's forward instead of the model's own, for what can be hooked into it."""

    attention: str | None = None
    """The library's name of an attention kernel. None: the library's choice."""
    offload_blocks: int | None = None
    """Number of blocks on the device at a time; the others stay in the host's memory. None: all."""
    float8: bool = False
    """Whether weights are stored as float8 and cast when they are used."""


@dataclass(frozen=True, slots=True)
class DenoiserOptions:
    """How a stage's model should compute; its factory gets this with the checkpoint."""

    device: str
    """`cpu`, `cuda`, or `cuda:1` if each rank has its own GPU."""
    dtype: str
    """`float32`, `bfloat16` or `float16`."""
    skipping: Skipping | None = None
    """None: every step is full."""
    ranks: Ranks | None = None
    """None: this process computes alone."""
    hooked: Hooked | None = None
    """None: the model's own forward."""


class Denoiser(Protocol):
    """A solver over a network. The stage calls it from one thread, one call at a time."""

    def awaits(self, inputs: Any) -> Collection[str]:
        """Ports of earlier stages whose payloads a request needs before it can begin."""
        ...

    def begin(self, inputs: Any, arrived: Mapping[str, Payload]) -> Any:
        """Make a job, at its first noise. Other jobs wait meanwhile, so anything that takes a
        forward must be a step of the job.

        Args:
            inputs: the stage input that the request builder made.
            arrived: what `awaits` named, by port.

        Raises:
            CantataError: it cannot be drawn.
        """
        ...

    def steps(self, job: Any) -> int:
        """How often the job must advance in all, at least 1: to read, to write and to draw. Asked
        again after each step, so that a model that needs fewer can say so before the last one."""
        ...

    def previews(self, job: Any) -> int:
        """Number of previews that the client wants."""
        ...

    def size(self, job: Any) -> ForwardSize:
        """Size of the job's next step."""
        ...

    def group(self, job: Any) -> Hashable:
        """Jobs share a forward only if their groups are equal. A network that packs rows of any
        size has one group; one that needs equal shapes has one for each shape."""
        ...

    def advance(self, jobs: Sequence[Any]) -> Sequence[CantataError | None]:
        """Advance each of these jobs, all of one group, by one step.

        In float32 a job's latents do not depend on the other jobs. If this raises, no job has
        advanced; each is then tried by itself, and those that raise fail.

        Returns:
            For each job why it cannot go on, or None.
        """
        ...

    def preview(self, job: Any) -> NDArray[np.uint8]:
        """[H, W, 3] RGB: a preview of the job's picture, as small as is cheap."""
        ...

    def latents(self, job: Any) -> NDArray[np.float32]:
        """[L, E] for the next stage, after the last step."""
        ...


class Writer(Denoiser, Protocol):
    """A denoiser of a stage with the port `codes`: its jobs write text. If the stage also has the
    port `latents`, a job either draws, too, and its text is a thought; or it only writes, and makes
    neither latents nor progress."""

    def draws(self, inputs: Any) -> bool:
        """Whether the job of these inputs draws. Only called in a stage with both ports. For a job
        that does not, the builder names the other ports in `PipelineRequest.without`."""
        ...

    def written(self, job: Any) -> NDArray[np.int32]:
        """[T] tokens of the last step. T is 0 in steps that only read or draw; T = 0 in the job's
        last step means that the text ended by itself and was not cut."""
        ...
