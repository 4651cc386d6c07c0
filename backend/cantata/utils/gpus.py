"""The GPUs that a process may use, asked of the driver's own library.

Importing torch takes seconds, and opening CUDA takes memory of every card.
"""

from __future__ import annotations

import ctypes
import os

VISIBLE = "CUDA_VISIBLE_DEVICES"
_LIBRARY = "libnvidia-ml.so.1"


def list_gpus() -> list[str] | None:
    """The GPUs that this process may use, as CUDA names them. None: they cannot be found out."""
    named = os.environ.get(VISIBLE)
    if named is not None:
        return [name.strip() for name in named.split(",") if name.strip()]
    count = _count()
    return None if count is None else [str(index) for index in range(count)]


def see_one_gpu(index: int) -> None:
    """Let this process use a single one of its GPUs from now on, as its first one; CUDA has not
    been opened yet."""
    gpus = list_gpus()
    # Beyond the end, CUDA itself says that there is none.
    os.environ[VISIBLE] = gpus[index] if gpus is not None and index < len(gpus) else str(index)


def _count() -> int | None:
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    count = ctypes.c_uint()
    if library.nvmlInit_v2() or library.nvmlDeviceGetCount_v2(ctypes.byref(count)):
        return None
    library.nvmlShutdown()
    return count.value
