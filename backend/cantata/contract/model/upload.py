"""Copies from the host to a stage's device, for which nothing waits."""

from __future__ import annotations

from collections.abc import Sequence

import torch


def upload(values: torch.Tensor, device: torch.device) -> torch.Tensor:
    """Begin to copy a tensor of the host, which is not written to any more, to a device.

    Only from pinned memory does a GPU copy while the host goes on. torch keeps such memory and
    gives it out again once the copy is done. What lies on a device, or stays on the CPU, is
    returned as it is, or copied there.
    """
    if device.type == "cuda" and values.device.type == "cpu":
        values = values.pin_memory()
    return values.to(device, non_blocking=True)


def upload_together(values: Sequence[torch.Tensor], device: torch.device) -> list[torch.Tensor]:
    """Begin to copy tensors of one dtype, of any shapes, in one copy; see `upload`."""
    if device.type == "cpu" or not values:
        return list(values)
    block = upload(torch.cat([each.ravel() for each in values]), device)
    parts = torch.split(block, [each.numel() for each in values])
    return [part.view(each.shape) for part, each in zip(parts, values, strict=True)]
