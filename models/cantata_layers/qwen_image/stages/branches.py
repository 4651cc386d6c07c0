"""The velocities of a step's rows, whole or shortened; of guided pictures on two ranks, each branch
on one, with one exchange of velocities a step.

Letters: N tokens of a picture, P numbers of a token."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import distributed

from cantata.contract.data.errors import RequestFailed
from cantata.contract.model.denoiser import Ranks, Skipping
from cantata_layers.qwen_image.transformer.network import Row, VelocityPredictor
from cantata_layers.qwen_image.transformer.skipping import Memory, SkippingPass


class BranchExchange:
    """Each rank computes the rows that it owns, and all get the velocities of all rows. `ranks`:
    this process among them; torch's default group is theirs."""

    def __init__(self, ranks: Ranks, device: torch.device) -> None:
        self._ranks, self._device = ranks, device

    def owner(self, job: int, branch: int) -> int:
        """The rank that computes a branch, the same in all steps.

        Args:
            job: its number; pictures without guidance are counted, and so alternate.
            branch: 0 or 1.
        """
        return (job + branch) % self._ranks.size

    def owns(self, owner: int) -> bool:
        """Whether that is this rank."""
        return owner == self._ranks.rank

    def gather(
        self,
        output: Sequence[torch.Tensor] | Exception,
        owners: Sequence[int],
        shapes: Sequence[torch.Size],
    ) -> list[torch.Tensor]:
        """[N, P] float32 of every row.

        Args:
            made: of this rank's rows, in order, or why there are none.

        Raises:
            RequestFailed: a rank could not compute its rows; raised on every rank.
        """
        counts = [
            sum(shape.numel() for shape, owner in zip(shapes, owners, strict=True) if owner == rank)
            for rank in range(self._ranks.size)
        ]
        # Every rank sends as much; the first number says whether the others are right.
        sent = torch.zeros(1 + max(counts), device=self._device)
        if not isinstance(output, Exception):
            sent[0] = 1
            sent[1 : 1 + counts[self._ranks.rank]] = torch.cat(
                [sent[:0], *(values.flatten() for values in output)]
            )
        received = [torch.empty_like(sent) for _ in counts]
        distributed.all_gather(received, sent)
        failed = [rank for rank, values in enumerate(received) if not values[0]]
        if failed:
            cause = output if isinstance(output, Exception) else None
            raise RequestFailed(f"rank {failed[0]} could not compute its branches") from cause
        return _cut(received, owners, shapes)


def _cut(
    received: Sequence[torch.Tensor], owners: Sequence[int], shapes: Sequence[torch.Size]
) -> list[torch.Tensor]:
    places = [1] * len(received)
    rows = []
    for owner, shape in zip(owners, shapes, strict=True):
        start = places[owner]
        places[owner] += shape.numel()
        rows.append(received[owner][start : places[owner]].view(shape))
    return rows


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
    """Computes steps in one forward. `skipping`: None: every step is full."""

    def __init__(self, network: VelocityPredictor, skipping: Skipping | None) -> None:
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
    """Computes steps on two ranks, each branch on its own."""

    def __init__(self, compute: Compute, exchange: BranchExchange) -> None:
        self._compute, self._exchange = compute, exchange

    def __call__(self, steps: Sequence[BranchStep]) -> list[Made]:
        """Of each of these. A branch that another rank computes has its memory there. Raises
        RequestFailed: a rank could not compute its branches."""
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
