"""A stage's device: whether memory suffices, how exactly it multiplies, and copies to the host.

Memory is checked before it is allocated. WHY: the kernel grants more memory than there is, and ends
the process when it is used; a GPU's allocator says how much one tensor lacks, not what all of it
takes.
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
    return f"{count / 2**30:.1f} GiB"


def check_room(
    stage: str, slot_bytes: int, slots: int, device: torch.device, spare: int = 0
) -> None:
    """Compare the memory that the slots, and `spare` more, need with what is free now. Raises
    ConfigError: says how many slots fit."""
    free = free_bytes(device)
    needed = slot_bytes * (slots + spare)
    if needed > free:
        beside = f" and {spare} spare" if spare else ""
        raise ConfigError(
            f"stage {stage!r}: {slots} slots{beside} of decoder state need {format_gib(needed)}, "
            f"{format_gib(free)} are free; at most {max(0, free // slot_bytes - spare)} slots fit"
        )


def allow_tf32(allowed: bool) -> None:
    """Let float32 products and convolutions of this process round their inputs to TF32 on CUDA.

    WHY both are set: by torch's defaults convolutions round and products do not.
    """
    torch.backends.cuda.matmul.allow_tf32 = allowed
    torch.backends.cudnn.allow_tf32 = allowed


class Download:
    """Begins to copy a tensor; the device may be given more to do before the copy is read.
    `source`: may be written over by what the device is given to do later."""

    def __init__(self, source: torch.Tensor) -> None:
        self._copy = source
        self._done: torch.cuda.Event | None = None
        if source.device.type == "cpu":
            return
        on_cuda = source.device.type == "cuda"
        # Only into pinned memory does a GPU copy while the host goes on.
        self._copy = torch.empty(source.shape, dtype=source.dtype, pin_memory=on_cuda)
        self._copy.copy_(source, non_blocking=True)
        if on_cuda:
            self._done = torch.cuda.Event()  # type: ignore[no-untyped-call]
            self._done.record(torch.cuda.current_stream(source.device))

    def wait(self) -> torch.Tensor:
        """The tensor on the host, once it is there."""
        if self._done is not None:
            self._done.synchronize()
        return self._copy
