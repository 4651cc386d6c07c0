"""Whether the running listeners have enough sound left for another request to start.

A new request's prompt and first frames take time from running streams. While a listener waits for
sound and has little left to play, no request starts. Nothing here knows a model or reads a clock.
"""

from __future__ import annotations

COMFORTABLE_PERIODS = 1.25
"""A listener with this many frame periods of sound left is safe: most of a frame's longest path
under full load (see `places`)."""
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

    def waits(self, request_id: str, playout_deadline_s: float) -> None:
        """A listener has received everything so far and waits for more.

        Args:
            playout_deadline_s: when it has played that, on any monotonic clock; at least now, since
                sound that a slow reader held back is not missing.
        """
        self._playout_deadlines_s[request_id] = playout_deadline_s

    def served(self, request_id: str) -> None:
        """A listener received more, or has ended; unknown ids are ignored."""
        self._playout_deadlines_s.pop(request_id, None)

    def has_headroom(self, now_s: float) -> bool:
        """Whether every listener is safe."""
        return not any(
            -GIVEN_UP_S < playout_deadline_s - now_s < self._comfortable_s
            for playout_deadline_s in self._playout_deadlines_s.values()
        )
