"""bfloat16 where a training gains by it."""

from __future__ import annotations

import torch


def autocast_bfloat16(device: str = "cpu") -> torch.autocast:
    """Products in bfloat16; in float32 on a CPU without instructions for it.

    Such a CPU converts each number: a step of quartet's training took ten times as long.
    """
    emulated = device == "cpu" and not torch.cpu.get_capabilities().get("avx512_bf16", False)
    return torch.autocast(device, torch.bfloat16, enabled=not emulated)
