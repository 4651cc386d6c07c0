"""A listener's player, simulated: whether sound came in time."""

from __future__ import annotations

UNHEARD_S = 0.001
"""A player takes its sound in blocks of a few milliseconds; less than that is no gap."""


class SimulatedPlayer:
    """Begins to play `reserve_s` after the first sound and stands still while it has none.

    Time counts against the server only while it is asked for sound: what a client that reads slowly
    holds back is not missing.
    """

    def __init__(self, reserve_s: float) -> None:
        self.reserve_s = reserve_s
        self.underruns = 0
        """How often it stood still."""
        self.still_s = 0.0
        """For how long, in all."""
        self._runs_dry_s: float | None = None

    def take(self, asked_s: float, arrived_s: float, duration_s: float) -> None:
        """More sound.

        Args:
            asked_s: when the server was free to give it, all before having been sent.
            arrived_s: when it was there; on the same clock.
            duration_s: of the sound.
        """
        if self._runs_dry_s is None:
            self._runs_dry_s = arrived_s + self.reserve_s
        late_s = arrived_s - max(self._runs_dry_s, asked_s)
        if late_s > UNHEARD_S:
            self.underruns += 1
            self.still_s += late_s
        self._runs_dry_s = max(self._runs_dry_s, arrived_s) + duration_s
