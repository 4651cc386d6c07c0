"""Settings of a process through which sound passes: nothing holds its event loop up for long."""

from __future__ import annotations

import ctypes
import gc
import logging
import os
import struct
import sys

_SWITCH_INTERVAL_S = 0.001


def configure_gc() -> None:
    """Keep collections of garbage and computing threads from holding sound up. Call it once what
    lives as long as the process is imported."""
    # WHY: what is loaded by now stays, and scanning it for garbage would delay every stream by a
    # quarter of a second, whenever enough objects have outlived their requests.
    gc.freeze()
    # A thread that reads a text yields to the loop, which sends sound, after a millisecond.
    sys.setswitchinterval(_SWITCH_INTERVAL_S)


logger = logging.getLogger(__name__)

SLICE_NS = 100_000
"""The shortest that Linux takes; its default is some milliseconds."""
_SCHED_SETATTR = {"x86_64": 314, "aarch64": 274}
"""System call numbers."""
_ATTRIBUTES = struct.Struct("=IIQiIQQQ")
"""`struct sched_attr` of sched_setattr(2): size, policy, flags, nice, priority, runtime, deadline,
period. The runtime is the slice."""
_RESET_ON_FORK = 1


def shorten_time_slice() -> None:
    """Have the kernel run this thread soon after it wakes up: for an event loop.

    WHY: on busy cores, each process on the way of a sound waits until a stage's slice is over, for
    milliseconds. A thread that asks for short slices gets its turn sooner, and no more CPU time. It
    needs no privilege. Without effect before Linux 6.12 and on other systems; threads and processes
    that this thread starts keep the default.
    """
    number = _SCHED_SETATTR.get(os.uname().machine)
    if number is None or not hasattr(os, "sched_getscheduler"):
        return
    nice = os.getpriority(os.PRIO_PROCESS, 0)
    # Another policy is the operator's choice; a negative niceness would not pass to children.
    if os.sched_getscheduler(0) != os.SCHED_OTHER or nice < 0:
        return
    attributes = _ATTRIBUTES.pack(
        _ATTRIBUTES.size, os.SCHED_OTHER, _RESET_ON_FORK, nice, 0, SLICE_NS, 0, 0
    )
    libc = ctypes.CDLL(None, use_errno=True)
    if libc.syscall(number, 0, attributes, 0):
        logger.debug("the kernel keeps its time slice: %s", os.strerror(ctypes.get_errno()))
