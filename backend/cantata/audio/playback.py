"""Follows a listener's player: when its sound runs out, and how often it stalls."""

from __future__ import annotations

UNHEARD_S = 0.001
"""Players take sound in blocks of a few milliseconds; a shorter delay is not a gap."""


class Playback:
    """A listener that plays sound from its first sample on, as it arrives."""

    def __init__(self) -> None:
        self.playout_deadline_s: float | None = None
        """When all received sound will have been played, by the caller's clock; None before any
        sound."""

    def take(self, arrived_s: float, duration_s: float) -> None:
        """Add sound that has just arrived. `arrived_s`: when it arrived; after a gap, playing goes
        on then."""
        start_s = (
            arrived_s
            if self.playout_deadline_s is None
            else max(self.playout_deadline_s, arrived_s)
        )
        self.playout_deadline_s = start_s + duration_s


class SimulatedPlayback:
    """Starts `reserve_s` after the first sound and stalls whenever it runs dry.

    Delay counts only while the server is being asked for sound: a client that reads slowly causes
    no gap.
    """

    def __init__(self, reserve_s: float) -> None:
        self.reserve_s = reserve_s
        self.underruns = 0
        self.still_s = 0.0
        self._playback = Playback()

    def take(self, asked_s: float, arrived_s: float, duration_s: float) -> None:
        """Add sound.

        Args:
            asked_s: when the server was asked for it, all earlier sound having been sent.
            arrived_s: when it arrived, by the same clock.
        """
        if self._playback.playout_deadline_s is None:
            self._playback.take(arrived_s, self.reserve_s)
        late_s = arrived_s - max(self._playback.playout_deadline_s or arrived_s, asked_s)
        if late_s > UNHEARD_S:
            self.underruns += 1
            self.still_s += late_s
        self._playback.take(arrived_s, duration_s)
