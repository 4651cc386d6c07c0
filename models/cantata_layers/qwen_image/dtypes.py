"""Which numbers networks compute with."""

from __future__ import annotations

import torch


def dtype_on(device: torch.device) -> torch.dtype:
    """Float32 on a CPU, bfloat16 elsewhere."""
    return torch.float32 if device.type == "cpu" else torch.bfloat16
