"""How many listeners a stage can serve without a gap, by the steps that it has taken.

A step takes a fixed time and some for each frame that it makes: t(n) = a + b n. With one frame for
each of n listeners in every step, all of them hear sound without a gap as long as t(n) stays below
the frame period. Nothing here knows a model or reads a clock: times come in as numbers.
"""

from __future__ import annotations

USABLE = 0.8
"""Of the frame period; the rest is for prompts, messages and whoever else uses the machine."""
_KEPT = 0.99
"""What a measurement still weighs one step later: about the last hundred steps count."""
_SETTLING_STEPS = 4
"""The first steps of a process also load kernels and memory; they are not counted."""
_PRIOR = 0.1
"""Weight of the assumption that all of a step's time grows with its frames. It decides as long as
all steps made equally many, so that nothing is promised that was not measured."""

_LEAST_SLOPE_S = 1e-6
"""A frame is never free."""


class Pace:
    """Fits t(n) to the latest steps.

    Args:
        frame_period_s: seconds of sound in one frame.
        slots: requests that the stage holds at most.
    """

    def __init__(self, frame_period_s: float, slots: int) -> None:
        self._period_s = frame_period_s
        self._slots = slots
        self._steps = 0
        self._weight = 0.0
        self._frames = 0.0
        """Mean of n; the next three are of t, n n and n t."""
        self._seconds = 0.0
        self._frames_squared = 0.0
        self._frames_seconds = 0.0

    def measure(self, frames: int, seconds: float) -> None:
        """Take a step into account.

        Args:
            frames: made, of all requests together; a step that made none tells nothing.
            seconds: that it took.
        """
        if frames < 1:
            return
        self._steps += 1
        if self._steps <= _SETTLING_STEPS:
            return
        self._weight = self._weight * _KEPT + 1
        share = 1 / self._weight
        self._frames += share * (frames - self._frames)
        self._seconds += share * (seconds - self._seconds)
        self._frames_squared += share * (frames * frames - self._frames_squared)
        self._frames_seconds += share * (frames * seconds - self._frames_seconds)

    @property
    def places(self) -> int:
        """Listeners that can be served without a gap: 1 to `slots`; `slots` before a step was
        measured."""
        if not self._weight:
            return self._slots
        fixed_s, frame_s = self._line()
        affordable = (self._period_s * USABLE - fixed_s) / frame_s
        return max(1, min(self._slots, int(affordable)))

    def _line(self) -> tuple[float, float]:
        """a and b, in seconds; least squares, neither below zero."""
        proportional = self._seconds / self._frames
        variance = self._frames_squared - self._frames**2
        covariance = self._frames_seconds - self._frames * self._seconds
        slope = (covariance + _PRIOR * proportional) / (variance + _PRIOR)
        slope = max(min(slope, proportional), _LEAST_SLOPE_S)
        return self._seconds - slope * self._frames, slope
