"""Settings of Python's interpreter for a process through which sound passes."""

from __future__ import annotations

import gc
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
