"""The order in which a stage takes in waiting requests: earliest playback deadline first.

A new listener is at its deadline when it arrives. A listener that continues with its next piece has
sound to play until it runs dry, so its piece may wait until then, minus the time from intake to its
first sound. Nothing here knows a model or reads
a clock.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")

LEAD_PERIODS = 6
"""Frame periods from intake to the request's first sound, generously."""


class EdfQueue(Generic[T]):
    """Waiting requests.

    Args:
        frame_period_s: seconds of sound in one frame; 0 where there are no frames.
    """

    def __init__(self, frame_period_s: float) -> None:
        self._lead_s = LEAD_PERIODS * frame_period_s
        self._waiting: dict[str, tuple[float, T]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(
        self,
        request_id: str,
        item: T,
        now_s: float,
        *,
        playout_deadline_s: float | None,
        batch: bool,
    ) -> None:
        """Add a request.

        Args:
            item: what `take` returns for it.
            now_s: on any monotonic clock.
            playout_deadline_s: when its listener has nothing left to play, on the same clock; None:
                it has no sound yet.
            batch: a file render, which comes after all live requests.
        """
        due_s = now_s if playout_deadline_s is None else playout_deadline_s - self._lead_s
        self._waiting[request_id] = (math.inf if batch else due_s, item)

    def take(self, request_id: str | None = None) -> T | None:
        """Remove the most urgent request, or the given one; None if it is not waiting."""
        if request_id is None:
            request_id = min(self._waiting, key=lambda key: self._waiting[key][0], default="")
        return self._waiting.pop(request_id, (0.0, None))[1]
