"""The branches of guided pictures on two ranks, with one exchange of velocities a step.

Letters: N tokens of a picture, P numbers of a token.
"""

from __future__ import annotations

from collections.abc import Sequence

import torch
from torch import distributed

from cantata.contract.data.errors import RequestFailed
from cantata.contract.model.denoiser import Ranks


class BranchExchange:
    """Each rank computes the rows that it owns, and all get the velocities of all rows.

    Args:
        ranks: this process among them; torch's default group is theirs.
        device: of the exchange.
    """

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
            owners: of all rows.
            shapes: of all rows.

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
