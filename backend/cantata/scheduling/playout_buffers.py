"""Listeners' reserves: how many frames one needs, and whether all have enough for another request.

A first packet that leaves at once gives its listener one frame in reserve. With few listeners the
next frame arrives within a fraction of a frame period; under load it may take longer than one. A
new request's prompt and first frames take time from running streams, so while a listener waits for
sound and has little left to play, no request starts. Nothing here knows a model or reads a clock.
"""

from __future__ import annotations

import math

MARGIN = 0.2
"""Part of a frame period added to the longest recent latency."""
CROWD = 3
"""Listeners that start together make a burst from this number on, if they are at least a quarter of
all."""
_CROWDED = 25
"""Deliveries for which a burst still counts."""
MAX_PERIODS = 3
"""Upper bound: a longer wait means that something is broken."""
_FADING = 0.98
"""Decay per delivery: after 35 deliveries a long latency counts half."""
_PAUSE_PERIODS = 4
"""A longer interval means that there was no work to deliver."""


class JitterEstimator:
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
        self._crowded = 0
        """Deliveries for which a burst still counts as arriving."""

    def reserve_frames(self, stretch: float = 1.0) -> int:
        """Frames that outlast the longest recent latency: from one delivery to the next, behind a
        batch that has just begun, and through its own. One period more during a burst: the cost of
        its prompts is not known yet.

        Args:
            stretch: periods of frames that the listener plays in one period.
        """
        way_s = self._interval_s + 2 * self._batch_s
        periods = min(way_s / self._period_s + MARGIN, MAX_PERIODS) + (self._crowded > 0)
        return max(1, math.ceil(periods * stretch))

    @property
    def paused_s(self) -> float:
        """When deliveries count as paused, on their clock, if there is none until then."""
        return self._delivered_s + _PAUSE_PERIODS * self._period_s

    def should_hold_first_packet(
        self,
        frames: int,
        *,
        complete: bool,
        others_speak: bool,
        stretch: float = 1.0,
    ) -> bool:
        """Whether a listener's first packet waits for another frame.

        Args:
            frames: how many of its frames have arrived whose sound it will play.
            complete: no more will arrive.
            others_speak: other streams are active, so deliveries continue.
            stretch: as in `reserve_frames`.
        """
        return 0 < frames < self.reserve_frames(stretch) and not complete and others_speak

    def record_delivery(self, now_s: float, *, beginning: int = 0, listeners: int = 0) -> None:
        """Frames were delivered.

        Args:
            now_s: on any monotonic clock.
            beginning: listeners without sound.
            listeners: all of them.
        """
        interval_s, paused = now_s - self._delivered_s, now_s >= self.paused_s
        self._delivered_s = now_s
        self.deliveries += 1
        self._interval_s *= _FADING
        self._batch_s *= _FADING
        comes = beginning >= max(CROWD, listeners / 4)
        self._crowded = _CROWDED if comes else max(0, self._crowded - 1)
        if self.deliveries > 1 and not paused:
            self._interval_s = max(self._interval_s, interval_s)

    def record_batch(self, seconds: float) -> None:
        """A batch took this long."""
        self._batch_s = max(self._batch_s, seconds)


COMFORTABLE_PERIODS = 1.25
"""A listener with this many frame periods of sound left is safe: most of a frame's longest path
under full load (see `compute_places`)."""
GIVEN_UP_S = 1.0
"""Seconds after which a listener that ran dry no longer counts: it waits for something broken."""


class PlayoutBuffers:
    """Listeners that wait for more sound, and when each runs dry.

    Args:
        frame_period_s: seconds of sound in one frame.
    """

    def __init__(self, frame_period_s: float) -> None:
        self._comfortable_s = COMFORTABLE_PERIODS * frame_period_s
        self._playout_deadlines_s: dict[str, float] = {}

    def __len__(self) -> int:
        return len(self._playout_deadlines_s)

    def mark_waiting(self, request_id: str, playout_deadline_s: float) -> None:
        """A listener has received everything so far and waits for more.

        Args:
            playout_deadline_s: when it has played that, on any monotonic clock; at least now, since
                sound that a slow reader held back is not missing.
        """
        self._playout_deadlines_s[request_id] = playout_deadline_s

    def clear_waiting(self, request_id: str) -> None:
        """A listener received more, or has ended; unknown ids are ignored."""
        self._playout_deadlines_s.pop(request_id, None)

    def has_headroom(self, now_s: float) -> bool:
        """Whether every listener is safe."""
        return not any(
            -GIVEN_UP_S < playout_deadline_s - now_s < self._comfortable_s
            for playout_deadline_s in self._playout_deadlines_s.values()
        )
