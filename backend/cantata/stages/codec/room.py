"""Whether there is memory for every slot's streaming state, asked before it is allocated."""

from __future__ import annotations

import psutil
import torch

from cantata.contract.data.errors import ConfigError


def check_room(
    stage: str, slot_bytes: int, slots: int, device: torch.device, spare: int = 0
) -> None:
    """Compare what the slots, and `spare` more, need with what is free now.

    WHY: the kernel grants more memory than there is, and ends the process when it is used.

    Raises:
        ConfigError: says how many slots fit.
    """
    free = free_bytes(device)
    needed = slot_bytes * (slots + spare)
    if needed > free:
        beside = f" and {spare} spare" if spare else ""
        raise ConfigError(
            f"stage {stage!r}: {slots} slots{beside} of decoder state need {_gib(needed)}, "
            f"{_gib(free)} are free; at most {max(0, free // slot_bytes - spare)} slots fit"
        )


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)


def _gib(count: int) -> str:
    return f"{count / 2**30:.1f} GiB"
