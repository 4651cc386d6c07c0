"""How much a picture costs."""

from __future__ import annotations

from collections.abc import Sequence

from cantata.contract.data.forward_size import ForwardSize


def forward_size(texts: Sequence[int], pictures: int) -> ForwardSize:
    """How much a step of one picture computes.

    Args:
        texts: tokens of the text of each branch.
        pictures: tokens of noise and references.
    """
    rows = [text + pictures for text in texts]
    return ForwardSize(sum(rows), sum(row**2 for row in rows))
