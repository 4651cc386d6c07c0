"""Whether frames come so slowly that a listener's second one might be late.

A first packet that leaves at once leaves its listener one frame in reserve. With few listeners the
next frame comes in a fraction of a frame's period; in a crowd it may take all of it. Nothing here
knows a model or reads a clock.
"""

from __future__ import annotations

SLOW = 0.4
"""Of the frame period: what a frame's usual way may take, so that one that takes twice as long is
in time."""
_NEW_WEIGHT = 0.2
"""Of the latest delivery and the latest batch, in what is usual."""
_PAUSE_PERIODS = 4
"""After so long without a delivery there was nothing to deliver."""


class Cadence:
    """Follows deliveries of frames and the batches decoded from them.

    Args:
        frame_period_s: seconds of sound in one frame.
    """

    def __init__(self, frame_period_s: float) -> None:
        self.deliveries = 0
        self._period_s = frame_period_s
        self._delivered_s = 0.0
        self._interval_s = 0.0
        self._batch_s = 0.0

    @property
    def is_slow(self) -> bool:
        """Whether a frame's way, from one delivery to the next and through a batch, takes long."""
        return self._interval_s + self._batch_s > SLOW * self._period_s

    def holds_first(self, frames: int, *, complete: bool, others_speak: bool) -> bool:
        """Whether a listener's first packet waits for another frame.

        Args:
            frames: of it that are there and that it will hear.
            complete: no more will come.
            others_speak: frames of others are still made, so that deliveries go on.
        """
        return frames == 1 and not complete and others_speak and self.is_slow

    def delivered(self, now_s: float) -> None:
        """Frames have come, on any monotonic clock."""
        interval_s = now_s - self._delivered_s
        self._delivered_s = now_s
        self.deliveries += 1
        if self.deliveries > 1 and interval_s < _PAUSE_PERIODS * self._period_s:
            self._interval_s += _NEW_WEIGHT * (interval_s - self._interval_s)

    def decoded(self, seconds: float) -> None:
        """A batch took so long."""
        self._batch_s += _NEW_WEIGHT * (seconds - self._batch_s)
