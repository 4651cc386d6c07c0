"""Whether there is memory for every slot's streaming state, asked before it is allocated."""

from __future__ import annotations

import psutil
import torch

from cantata.contract.data.errors import ConfigError


def check_room(stage: str, slot_bytes: int, slots: int, device: torch.device) -> None:
    """Compare what the slots need with what is free now.

    WHY: the kernel grants more memory than there is, and ends the process when it is used.

    Raises:
        ConfigError: says how many slots fit.
    """
    free = free_bytes(device)
    if slot_bytes * slots > free:
        raise ConfigError(
            f"stage {stage!r}: {slots} slots of decoder state need {_gib(slot_bytes * slots)}, "
            f"{_gib(free)} are free; at most {free // slot_bytes} slots fit"
        )


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
