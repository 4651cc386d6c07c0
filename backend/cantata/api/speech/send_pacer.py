"""Paces sound: how far it is ahead of a client that plays it at once."""

from __future__ import annotations

import asyncio

from cantata.audio.playback import Playback


class SendPacer:
    """Sound that was sent and cannot have been played yet.

    Args:
        max_s: how much of it there may be; None: any.
    """

    def __init__(self, max_s: float | None) -> None:
        self._max_s = max_s
        self._playback = Playback()

    @property
    def heard_until(self) -> float:
        """Loop time at which a client that plays at once has played everything; 0 before any."""
        return self._playback.playout_deadline_s or 0.0

    def take(self, duration_s: float) -> None:
        """Sound of this length arrives now."""
        self._playback.take(asyncio.get_running_loop().time(), duration_s)

    def reset(self) -> None:
        """The client plays no more of what it has."""
        self._playback = Playback()

    async def wait(self) -> None:
        """Wait until the client has no more than `max_s` of sound left to play."""
        if self._max_s is None:
            return
        ahead_s = self.heard_until - asyncio.get_running_loop().time()
        if ahead_s > self._max_s:
            await asyncio.sleep(ahead_s - self._max_s)
