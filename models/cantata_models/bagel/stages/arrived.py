"""What arrives for several pictures, one after the other, cut into theirs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import torch

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import RequestFailed
from cantata_layers.qwen_image.transformer.packing import by_row


def make_rows(
    arrived: Mapping[str, Payload], port: str, lengths: Sequence[int]
) -> Sequence[torch.Tensor]:
    """The rows of each picture.

    Args:
        arrived: by port.
        port: of the stage that made them.
        lengths: rows of each picture.

    Raises:
        RequestFailed: they are not as many as the pictures have.
    """
    payload = arrived[port]
    if not isinstance(payload, Rows) or len(payload.values) != sum(lengths):
        raise RequestFailed(f"{port}: the pictures have {sum(lengths)} tokens, and others came")
    return by_row(torch.from_numpy(payload.values), lengths)
