"""A listener's clock: when everything that has arrived will have been played."""

from __future__ import annotations


class Playback:
    """A listener that plays sound from its first sample on, as it arrives."""

    def __init__(self) -> None:
        self.playout_deadline_s: float | None = None
        """When all received sound will have been played, by the caller's clock; None before any
        sound."""

    def take(self, arrived_s: float, duration_s: float) -> None:
        """Add sound that has just arrived.

        Args:
            arrived_s: when it arrived; after a gap, playing goes on then.
            duration_s: its length.
        """
        start_s = (
            arrived_s
            if self.playout_deadline_s is None
            else max(self.playout_deadline_s, arrived_s)
        )
        self.playout_deadline_s = start_s + duration_s
