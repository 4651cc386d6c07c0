"""bfloat16 where a training gains by it."""

from __future__ import annotations

import torch


def autocast_bfloat16(device: str = "cpu") -> torch.autocast:
    """Products in bfloat16; in float32 on a CPU or a GPU without instructions for it.

    Such a CPU converts each number: a step of quartet's training took ten times as long.

    Args:
        device: its type, as `torch.device.type`.
    """
    return torch.autocast(device, torch.bfloat16, enabled=not _is_emulated(device))


def _is_emulated(device: str) -> bool:
    if device == "cpu":
        return not torch.cpu.get_capabilities().get("avx512_bf16", False)
    return device == "cuda" and not torch.cuda.is_bf16_supported(including_emulation=False)
