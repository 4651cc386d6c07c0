"""The thread that sends heartbeats, even while an end's event loop is busy."""

from __future__ import annotations

import threading
from typing import Protocol

from cantata.distributed.link.heartbeat_monitor import BEAT_S


class HeartbeatTarget(Protocol):
    """A link that sends heartbeats."""

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
        """Send heartbeats for a link from now on."""
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
