"""A copy from the device to the host, during which the host goes on."""

from __future__ import annotations

import torch


class Download:
    """Begins to copy a tensor; the device may be given more to do before the copy is read.

    Args:
        source: may be written over by what the device is given to do later.
    """

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
