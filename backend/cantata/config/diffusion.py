"""What makes a stage that denoises faster or smaller: keys of its deployment, off by default."""

from __future__ import annotations

from typing import Annotated, Literal

from pydantic import Field, model_validator

from cantata.config.strict_model import StrictModel
from cantata.contract.model.denoiser import Hooked, Parallel, Skipping, SkipTest

Order = Annotated[int, Field(ge=0, le=3)]
Steps = Annotated[int, Field(ge=1, le=1000)]
BRANCHES = 2
"""Forward branches of a guided picture."""
Share = Annotated[float, Field(gt=0, le=10)]


class TeaCache(StrictModel):
    """Leaves out all blocks while the first block's input changes little (arXiv 2411.19108)."""

    kind: Literal["teacache"]
    threshold: Share = 0.2
    warmup_steps: Steps = 1
    coefficients: tuple[float, float, float, float, float] | None = Field(None, strict=False)
    """Of a polynomial of the change, the highest power first; None: the model's own."""

    def skipping(self) -> Skipping:
        return Skipping(
            SkipTest.INPUT, self.threshold, self.warmup_steps, coefficients=self.coefficients
        )


class FirstBlock(StrictModel):
    """Computes the first block, and leaves out the others while it adds nearly the same
    (ParaAttention's first-block cache)."""

    kind: Literal["first_block"]
    threshold: Share = 0.1
    warmup_steps: Steps = 1
    order: Order = 0

    def skipping(self) -> Skipping:
        return Skipping(
            SkipTest.RESIDUAL, self.threshold, self.warmup_steps, first_blocks=1, order=self.order
        )


class DualBlock(StrictModel):
    """Skips the blocks between several at both ends (cache-dit's DBCache); otherwise like
    `first_block`."""

    kind: Literal["dual_block"]
    threshold: Share = 0.08
    warmup_steps: Steps = 8
    first_blocks: Annotated[int, Field(ge=1)] = 1
    last_blocks: Annotated[int, Field(ge=0)] = 0
    order: Order = 0

    def skipping(self) -> Skipping:
        return Skipping(
            SkipTest.RESIDUAL,
            self.threshold,
            self.warmup_steps,
            self.first_blocks,
            self.last_blocks,
            self.order,
        )


class TaylorSeer(StrictModel):
    """Computes every so many steps, and foresees those between by a Taylor series
    (arXiv 2503.06923)."""

    kind: Literal["taylorseer"]
    interval: Annotated[int, Field(ge=2, le=20)] = 3
    warmup_steps: Steps = 3
    order: Order = 1

    def skipping(self) -> Skipping:
        return Skipping(SkipTest.INTERVAL, self.interval, self.warmup_steps, order=self.order)


StepCache = Annotated[TeaCache | FirstBlock | DualBlock | TaylorSeer, Field(discriminator="kind")]


class ParallelStage(StrictModel):
    """Processes that share each forward of a stage; on GPUs, each has one of its own."""

    kind: Parallel = Field(strict=False)
    ranks: Annotated[int, Field(ge=2, le=8)] = 2

    @model_validator(mode="after")
    def check_ranks(self) -> ParallelStage:
        """A picture has no more than two branches."""
        if self.kind is Parallel.BRANCHES and self.ranks != BRANCHES:
            raise ValueError(f"`branches` takes 2 ranks, not {self.ranks}")
        return self


class HookedStage(StrictModel):
    """Computes with diffusers' own network instead of the packed one: slower with several pictures,
    and within rounding of them, but what diffusers can do with a network works with it."""

    attention: str | None = None
    """The name of a kernel, as `set_attention_backend` of diffusers takes it."""
    offload_blocks: Annotated[int, Field(ge=1)] | None = None
    """So many blocks are on the device at a time."""
    float8: bool = False
    """Weights are stored in half the memory, at a price in likeness."""

    def options(self) -> Hooked:
        return Hooked(self.attention, self.offload_blocks, self.float8)
