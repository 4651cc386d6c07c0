"""Copies from the host to a stage's device, for which nothing waits."""

from __future__ import annotations

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
