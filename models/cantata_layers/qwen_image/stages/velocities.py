"""The velocities of a step's rows: of the packed network, whole or shortened, here or on two ranks.

Letters: N tokens of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Sequence
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


class PackedVelocities:
    """Computes steps in one forward.

    Args:
        network: of the checkpoint.
        skipping: None: every step is full.
        exchange: None: this process computes all branches.
    """

    def __init__(
        self, network: Denoiser, skipping: Skipping | None, exchange: BranchExchange | None
    ) -> None:
        self._network, self._skipping, self._exchange = network, skipping, exchange

    def __call__(self, steps: Sequence[BranchStep]) -> list[Made]:
        """Of each of these.

        Raises:
            RequestFailed: another rank could not compute its branches.
        """
        if self._exchange is None:
            return self._computed(steps)
        return self._shared(steps, self._exchange)

    def _computed(self, steps: Sequence[BranchStep]) -> list[Made]:
        rows, memories = [step.row for step in steps], [step.memory for step in steps]
        if self._skipping is None:
            return list(zip(self._network.velocities(rows), memories, strict=True))
        through = SkippingPass(self._skipping, memories)
        velocities = self._network.velocities(rows, through)
        return list(zip(velocities, through.memories, strict=True))

    def _shared(self, steps: Sequence[BranchStep], exchange: BranchExchange) -> list[Made]:
        """A branch that another rank computes has its memory there."""
        owners = [exchange.owner(step.job, step.branch) for step in steps]
        own = [step for step, owner in zip(steps, owners, strict=True) if exchange.owns(owner)]
        made: list[Made] = []
        fault: Exception | None = None
        try:
            made = self._computed(own) if own else []
        except Exception as error:
            fault = error
        shapes = [step.row.latents.shape for step in steps]
        mine = [velocity for velocity, _ in made] if fault is None else fault
        velocities = exchange.gather(mine, owners, shapes)
        after = iter(made)
        memories = [
            next(after)[1] if exchange.owns(owner) else step.memory
            for step, owner in zip(steps, owners, strict=True)
        ]
        return list(zip(velocities, memories, strict=True))
