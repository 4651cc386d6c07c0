"""Whether what a stage will hold fits into memory, asked before it is allocated.

WHY: the kernel grants more memory than there is, and ends the process when it is used; a GPU's
allocator says how much one tensor lacks, not what all of it takes.
"""

from __future__ import annotations

from collections.abc import Mapping

import psutil
import torch

from cantata.contract.data.errors import ConfigError


def check_memory(needs: Mapping[str, int], free: int, device: str, remedy: str) -> None:
    """Compare a sum with what is free.

    Args:
        needs: bytes, by what takes them.
        free: bytes on the device.
        device: its name.
        remedy: which settings of the deployment make it less.

    Raises:
        ConfigError: has all the numbers.
    """
    whole = sum(needs.values())
    if whole <= free:
        return
    parts = ", ".join(f"{what} {format_gib(count)}" for what, count in needs.items())
    raise ConfigError(
        f"{format_gib(whole)} of memory are needed on {device!r} ({parts}), {format_gib(free)} are "
        f"free; {remedy}"
    )


def free_bytes(device: torch.device) -> int:
    """Memory that nobody uses."""
    if device.type == "cuda":
        return torch.cuda.mem_get_info(device)[0]
    return int(psutil.virtual_memory().available)


def format_gib(count: int) -> str:
    """Bytes, for people."""
    return f"{count / 2**30:.1f} GiB"
