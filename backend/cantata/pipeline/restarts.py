"""When a dead stage restarts, and what its deaths have in common."""

from __future__ import annotations

import signal
from collections import deque
from collections.abc import Callable

BACKOFF_S = (0.5, 2.0, 8.0, 30.0)
"""Waits before the first, second... restart of a stage that keeps failing; the last repeats."""
HEALTHY_S = 10.0
"""A process that was ready for this long was useful. So was one that completed a request."""
KILLS, KILLS_WITHIN_S = 3, 60.0
"""This many deaths by SIGKILL within this time are reported in `/health`."""


class RestartHistory:
    """One stage's starts and deaths.

    Args:
        clock: monotonic seconds.
    """

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._in_vain = 0
        """Consecutive processes that were not useful."""
        self._ready_at_s: float | None = None
        self._useful = False
        self._kills: deque[float] = deque(maxlen=KILLS)
        self.restarts = 0
        """Since the server's start, including failed attempts."""
        self.last_death: str | None = None

    def ready(self) -> None:
        """A process accepts requests."""
        self._ready_at_s = self._clock()
        self._useful = False

    def useful(self) -> None:
        """The process has completed a request."""
        self._useful = True

    def forgive(self) -> None:
        """The cause of the death is quarantined and cannot recur."""
        self._useful = True

    def died(self, why: str, exit_code: int | None) -> float:
        """The process has ended, ready or not; returns the seconds to wait before a restart."""
        now_s = self._clock()
        ready_at_s, self._ready_at_s = self._ready_at_s, None
        lived_s = 0.0 if ready_at_s is None else now_s - ready_at_s
        if self._useful or lived_s >= HEALTHY_S:
            self._in_vain = 0
        self._useful = False
        if exit_code == -signal.SIGKILL:
            self._kills.append(now_s)
        self.last_death = why
        wait_s = BACKOFF_S[min(self._in_vain, len(BACKOFF_S) - 1)]
        self._in_vain += 1
        self.restarts += 1
        return wait_s

    @property
    def trouble(self) -> str | None:
        """A warning for the operator, if any."""
        if len(self._kills) < KILLS or self._clock() - self._kills[0] > KILLS_WITHIN_S:
            return None
        return (
            f"killed {KILLS} times within {KILLS_WITHIN_S:g} s, as the kernel does where memory "
            "runs out: give the stage more memory, or fewer slots"
        )
