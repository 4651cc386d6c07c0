"""How many frames a listener needs in reserve, by how late frames have come.

A first packet that leaves at once leaves its listener one frame in reserve. With few listeners the
next frame comes in a fraction of a frame's period; in a crowd it may take more than all of it.
Nothing here knows a model or reads a clock.
"""

from __future__ import annotations

import math

MARGIN = 0.2
"""Of a frame period: what may come on top of the longest way of late."""
MOST_FRAMES = 3
"""However long the longest way: who waits for more waits for something that is broken."""
_FADING = 0.98
"""What one delivery leaves of those before it: after 35 a long way counts half."""
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
    def reserve_frames(self) -> int:
        """Frames that outlast the longest way of late: from one delivery to the next, behind a
        batch that has just begun, and through its own."""
        way_s = self._interval_s + 2 * self._batch_s
        return max(1, min(math.ceil(way_s / self._period_s + MARGIN), MOST_FRAMES))

    def holds_first(self, frames: int, *, complete: bool, others_speak: bool) -> bool:
        """Whether a listener's first packet waits for another frame.

        Args:
            frames: of it that are there and that it will hear.
            complete: no more will come.
            others_speak: frames of others are still made, so that deliveries go on.
        """
        return 0 < frames < self.reserve_frames and not complete and others_speak

    def delivered(self, now_s: float) -> None:
        """Frames have come, on any monotonic clock."""
        interval_s = now_s - self._delivered_s
        self._delivered_s = now_s
        self.deliveries += 1
        self._interval_s *= _FADING
        self._batch_s *= _FADING
        if self.deliveries > 1 and interval_s < _PAUSE_PERIODS * self._period_s:
            self._interval_s = max(self._interval_s, interval_s)

    def decoded(self, seconds: float) -> None:
        """A batch took so long."""
        self._batch_s = max(self._batch_s, seconds)
