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


def see_gpus(first: int, count: int = 1) -> None:
    """Let this process use so many of its GPUs from now on, numbered from 0; CUDA has not been
    opened yet."""
    named = list_gpus() or []
    # Beyond the end, CUDA itself says that there is none.
    seen = (
        named[index] if index < len(named) else str(index) for index in range(first, first + count)
    )
    os.environ[VISIBLE] = ",".join(seen)


def number_as_driver() -> None:
    """Have CUDA number the GPUs as the driver's library does; by default the fastest is first."""
    os.environ.setdefault("CUDA_DEVICE_ORDER", "PCI_BUS_ID")


class _Memory(ctypes.Structure):
    """`nvmlMemory_t`; bytes."""

    _fields_ = (
        ("total", ctypes.c_ulonglong),
        ("free", ctypes.c_ulonglong),
        ("used", ctypes.c_ulonglong),
    )


def read_free_bytes(index: int) -> int | None:
    """Memory of a GPU that nobody uses now, CUDA not opened. None: it cannot be found out. `index`:
    among those that this process may use."""
    named, library = list_gpus(), _open_library()
    if library is None or named is None or index >= len(named):
        return None
    name, handle, memory = named[index], ctypes.c_void_p(), _Memory()
    try:
        found = (
            library.nvmlDeviceGetHandleByIndex_v2(int(name), ctypes.byref(handle))
            if name.isdecimal()
            else library.nvmlDeviceGetHandleByUUID(name.encode(), ctypes.byref(handle))
        )
        if found or library.nvmlDeviceGetMemoryInfo(handle, ctypes.byref(memory)):
            return None
        return int(memory.free)
    finally:
        library.nvmlShutdown()


def _count() -> int | None:
    library, count = _open_library(), ctypes.c_uint()
    if library is None:
        return None
    try:
        return None if library.nvmlDeviceGetCount_v2(ctypes.byref(count)) else count.value
    finally:
        library.nvmlShutdown()


def _open_library() -> ctypes.CDLL | None:
    """None: there is no driver, or it does not answer."""
    try:
        library = ctypes.CDLL(_LIBRARY)
    except OSError:
        return None
    return None if library.nvmlInit_v2() else library
