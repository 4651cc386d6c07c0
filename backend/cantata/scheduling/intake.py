"""In which order a stage takes in the requests that wait: earliest playback deadline first.

A listener who has heard nothing yet is at its deadline when it comes. One that goes on with its
next piece has sound to play until it runs dry, so that its piece may wait for whoever comes before
that, but for the time that the piece itself takes to be heard. Nothing here knows a model or reads
a clock.
"""

from __future__ import annotations

import math
from typing import Generic, TypeVar

T = TypeVar("T")

LEAD_PERIODS = 6
"""Frame periods from being taken in to being heard, generously."""


class Intake(Generic[T]):
    """Waiting requests.

    Args:
        frame_period_s: seconds of sound in one frame.
    """

    def __init__(self, frame_period_s: float) -> None:
        self._lead_s = LEAD_PERIODS * frame_period_s
        self._waiting: dict[str, tuple[float, T]] = {}

    def __len__(self) -> int:
        return len(self._waiting)

    def put(
        self, request_id: str, item: T, now_s: float, *, runs_dry_s: float | None, batch: bool
    ) -> None:
        """One more waits.

        Args:
            item: what `take` returns for it.
            now_s: on any monotonic clock.
            runs_dry_s: when its listener has nothing left to play, on the same clock; None: it has
                heard nothing yet.
            batch: a file render, which comes after all that are listened to.
        """
        due_s = now_s if runs_dry_s is None else runs_dry_s - self._lead_s
        self._waiting[request_id] = (math.inf if batch else due_s, item)

    def take(self, request_id: str | None = None) -> T | None:
        """The most urgent one, or that one; None when it does not wait here."""
        if request_id is None:
            request_id = min(self._waiting, key=lambda key: self._waiting[key][0], default="")
        return self._waiting.pop(request_id, (0.0, None))[1]
