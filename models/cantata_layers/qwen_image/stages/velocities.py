"""The velocities of a step's rows: whole or shortened, here or on two ranks.

Letters: N tokens of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch

from cantata.contract.model.skipping import Skipping
from cantata_layers.qwen_image.stages.branches import BranchExchange
from cantata_layers.qwen_image.transformer.network import Denoiser, Row
from cantata_layers.qwen_image.transformer.skipping import Memory, SkippingPass


@dataclass(frozen=True, slots=True)
class BranchStep:
    """One branch of one job, before a step."""

    row: Row
    memory: Memory
    job: int
    """Its number."""
    branch: int


Made = tuple[torch.Tensor, Memory]
"""A branch's velocity [N, P] in float32, and its memory after the step."""


Compute = Callable[[Sequence[BranchStep]], list[Made]]
"""Computes steps, in one forward or in several."""


class PackedSteps:
    """Computes steps in one forward.

    Args:
        network: of the checkpoint.
        skipping: None: every step is full.
    """

    def __init__(self, network: Denoiser, skipping: Skipping | None) -> None:
        self._network, self._skipping = network, skipping

    def __call__(self, steps: Sequence[BranchStep]) -> list[Made]:
        """Of each of these."""
        rows, memories = [step.row for step in steps], [step.memory for step in steps]
        if self._skipping is None:
            return list(zip(self._network.velocities(rows), memories, strict=True))
        through = SkippingPass(self._skipping, memories)
        velocities = self._network.velocities(rows, through)
        return list(zip(velocities, through.memories, strict=True))


class SharedSteps:
    """Computes steps on two ranks, each branch on its own.

    Args:
        compute: of this rank.
        exchange: with the other one.
    """

    def __init__(self, compute: Compute, exchange: BranchExchange) -> None:
        self._compute, self._exchange = compute, exchange

    def __call__(self, steps: Sequence[BranchStep]) -> list[Made]:
        """Of each of these. A branch that another rank computes has its memory there.

        Raises:
            RequestFailed: a rank could not compute its branches.
        """
        exchange = self._exchange
        owners = [exchange.owner(step.job, step.branch) for step in steps]
        own = [step for step, owner in zip(steps, owners, strict=True) if exchange.owns(owner)]
        output: list[Made] = []
        fault: Exception | None = None
        try:
            output = self._compute(own) if own else []
        except Exception as error:
            fault = error
        shapes = [step.row.latents.shape for step in steps]
        mine = [velocity for velocity, _ in output] if fault is None else fault
        velocities = exchange.gather(mine, owners, shapes)
        after = iter(output)
        memories = [
            next(after)[1] if exchange.owns(owner) else step.memory
            for step, owner in zip(steps, owners, strict=True)
        ]
        return list(zip(velocities, memories, strict=True))
