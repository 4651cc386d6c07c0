"""Virtual time: an asyncio loop that jumps to the next event instead of waiting for it.

So the very objects that serve (`Admission`, with its queue and its timeouts) run unchanged in a
simulation, and an hour of it takes as long as its events take to compute.
"""

from __future__ import annotations

import asyncio
import selectors
from collections.abc import Coroutine
from typing import Any, TypeVar

R = TypeVar("R")


class _NothingScheduled(RuntimeError):
    """Every task waits for another: a fault of the simulation."""


class _JumpingSelector(selectors.DefaultSelector):
    """Advances the clock by the time that it was to wait."""

    now_s = 0.0

    def select(self, timeout: float | None = None) -> list[Any]:
        if timeout is None:
            raise _NothingScheduled("the simulation waits for nothing that will happen")
        self.now_s += timeout
        return []


class _VirtualTimeLoop(asyncio.SelectorEventLoop):
    def __init__(self) -> None:
        self._jumping = _JumpingSelector()
        super().__init__(self._jumping)

    def time(self) -> float:
        return self._jumping.now_s


def run_virtually(main: Coroutine[Any, Any, R]) -> R:
    """`asyncio.run` in virtual time, from 0 on; threads and sockets are out of its reach."""
    with asyncio.Runner(loop_factory=_VirtualTimeLoop) as runner:
        return runner.run(main)
