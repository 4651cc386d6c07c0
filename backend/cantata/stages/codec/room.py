"""Whether there is memory for every slot's streaming state, asked before it is allocated."""

from __future__ import annotations

import torch

from cantata.contract.data.errors import ConfigError
from cantata.stages.common.memory import format_gib, free_bytes


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
            f"stage {stage!r}: {slots} slots{beside} of decoder state need {format_gib(needed)}, "
            f"{format_gib(free)} are free; at most {max(0, free // slot_bytes - spare)} slots fit"
        )
