"""Heartbeats of a link: the thread that sends them, and when a silent peer counts as lost.

A thread of its own sends them, so that an end whose event loop is busy does not seem lost.
"""

from __future__ import annotations

import threading
from typing import Protocol

from cantata.distributed.link.errors import HeartbeatTimeout, PeerHung

BEAT_S = 0.25
"""Between two heartbeats of an end."""
LOST_S = 1.5
"""Silence after which the other end counts as lost."""
HUNG_S = 10.0
"""An end whose event loop has not run for this long counts as lost, in spite of its heartbeats."""
TICK_S = 0.1
"""Between two checks for silence."""


class HeartbeatMonitor:
    """How long nothing arrived, not counting time in which this end itself was late.

    A busy machine makes its own loop late, and what arrived meanwhile is still unread. So the time
    between two ticks counts only up to a little more than it should be.

    Args:
        now: of the monotonic clock that `tick` is given, in seconds.
    """

    def __init__(self, now: float) -> None:
        self._ticked = now
        self._silent_s = 0.0

    def on_data(self) -> None:
        """Something arrived."""
        self._silent_s = 0.0

    def tick(self, now: float) -> None:
        """Look at the clock. Raises HeartbeatTimeout: nothing arrived for too long."""
        self._silent_s += min(now - self._ticked, 1.5 * TICK_S)
        self._ticked = now
        if self._silent_s >= LOST_S:
            raise HeartbeatTimeout(f"the other end was silent for {LOST_S:g} s")


def check_loop(late_s: float) -> None:
    """Raises PeerHung if a heartbeat says that its sender's loop hangs."""
    if late_s >= HUNG_S:
        raise PeerHung(f"the other end's event loop has not run for {late_s:.1f} s")


class HeartbeatTarget(Protocol):
    def beat(self) -> None:
        """Say that this end is there; called by the heartbeat's thread; must not wait."""
        ...


class Heartbeat:
    """One thread for any number of links; it runs until `close`."""

    def __init__(self, interval_s: float = BEAT_S) -> None:
        self._interval_s = interval_s
        self._links: set[HeartbeatTarget] = set()
        self._lock = threading.Lock()
        self._closing = threading.Event()
        self._thread = threading.Thread(target=self._run, name="cantata:beats", daemon=True)

    def add(self, link: HeartbeatTarget) -> None:
        with self._lock:
            self._links.add(link)
            if self._thread.ident is None:
                self._thread.start()

    def remove(self, link: HeartbeatTarget) -> None:
        """Stop; once this returns, no heartbeat is under way."""
        with self._lock:
            self._links.discard(link)

    def close(self) -> None:
        """End the thread."""
        self._closing.set()
        if self._thread.ident is not None:
            self._thread.join()

    def _run(self) -> None:
        while not self._closing.wait(self._interval_s):
            with self._lock:
                for link in self._links:
                    link.beat()
