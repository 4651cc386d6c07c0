"""The time of a stage's steps, fitted to its past steps.

A step takes a fixed time plus some for each frame that it makes: t(n) = a + b n. Nothing here knows
a model or reads a clock: times come in as numbers.

Other work on the machine slows all steps alike and hardly changes how a step grows with its
frames. A Kalman filter models that: the common scale of a and b drifts quickly, their ratio slowly.
After an hour with one listener, on a machine that has become busy, the cost of eight is still
known, at the current speed. Both drift with time, not with steps: the next few steps outweigh what
was measured a minute ago, however few there were in between.
"""

from __future__ import annotations

import math

from cantata.contract.process.messages import StepCost

_NOISE = 0.3
"""Relative deviation of a step's time from the mean."""
_SPEED_DRIFT = 0.06
"""Drift of the speed per second (and with the square root of time): about the last second
counts."""
_SHAPE_DRIFT = 0.006
"""Drift of a and b individually, in the same units."""
_MAX_DRIFT_S = 60.0
"""Longer pauses count as this many seconds."""
_OUTLIER = 5.0
"""A slower step counts as this many standard deviations slow: a process that once waited for a
processor is not slow."""
_SETTLING_STEPS = 4
"""Number of first steps of a process that are not counted: they load kernels and memory."""
_MIN_SLOPE_S = 1e-6
"""Least seconds of a frame, which is never free."""

_FADING = 0.97
"""Decay per step of the mean: some 30 count, the parts of several sentences."""
_MAX_STEPS = 4.0
"""A step counts as at most this many mean ones: a process that once waited for a processor is not
slow."""


class StepTimeModel:
    """Fits t(n) to the steps."""

    def __init__(self) -> None:
        self._steps = 0
        self._measured_s = 0.0
        """When the latest step was measured."""
        self._fixed_s = 0.0
        """a, in seconds."""
        self._frame_s = 0.0
        """b, in seconds per frame."""
        self._doubt = (0.0, 0.0, 0.0)
        """Covariance of a and b: variance of a, covariance, variance of b."""

    def measure(self, frames: int, seconds: float, now_s: float) -> None:
        """Take a step into account.

        Args:
            frames: made, over all requests; a step that made none is ignored.
            seconds: its duration.
            now_s: when it ended, on any monotonic clock.
        """
        if frames < 1:
            return
        self._steps += 1
        if self._steps <= _SETTLING_STEPS:
            return
        if not self._frame_s:
            self._begin(frames, seconds)
            self._measured_s = now_s
            return
        self._track_drift(frames, min(max(0.0, now_s - self._measured_s), _MAX_DRIFT_S))
        self._measured_s = now_s
        self._correct(frames, seconds)

    @property
    def cost(self) -> StepCost | None:
        """The fit; None before a step was measured."""
        return StepCost(self._fixed_s, self._frame_s) if self._frame_s else None

    def _begin(self, frames: int, seconds: float) -> None:
        """Begin with one step. Until steps of other sizes are seen, all time is assumed to grow
        with the frames: admission promises only what was measured."""
        self._frame_s = max(seconds / frames, _MIN_SLOPE_S)
        doubt = self._frame_s**2
        self._doubt = (doubt * frames**2, -doubt * frames, doubt)

    def _track_drift(self, frames: int, elapsed_s: float) -> None:
        fixed, both, frame = self._doubt
        speed, shape = elapsed_s * _SPEED_DRIFT**2, elapsed_s * _SHAPE_DRIFT**2
        step_s = self._fixed_s + self._frame_s * frames
        self._doubt = (
            fixed + speed * self._fixed_s**2 + shape * step_s**2,
            both + speed * self._fixed_s * self._frame_s,
            frame + speed * self._frame_s**2 + shape * self._frame_s**2,
        )

    def _correct(self, frames: int, seconds: float) -> None:
        fixed, both, frame = self._doubt
        expected_s = self._fixed_s + self._frame_s * frames
        with_fixed, with_frame = fixed + both * frames, both + frame * frames
        total = with_fixed + with_frame * frames + (_NOISE * expected_s) ** 2
        of_fixed, of_frame = with_fixed / total, with_frame / total
        self._doubt = (
            fixed - of_fixed * with_fixed,
            both - of_fixed * with_frame,
            frame - of_frame * with_frame,
        )
        news_s = min(seconds - expected_s, _OUTLIER * math.sqrt(total))
        step_s = expected_s + (of_fixed + of_frame * frames) * news_s
        frame_s = self._frame_s + of_frame * news_s
        # Neither is below zero.
        self._frame_s = max(min(frame_s, step_s / frames), _MIN_SLOPE_S)
        self._fixed_s = step_s - self._frame_s * frames


class FrameTimeModel:
    """The mean time of a frame, t(n) = b n, where no two requests share a step.

    WHY no fixed time: of a step that serves one request nothing is shared, so n listeners take n
    times as much, whatever part of it is fixed. It is a mean over many steps, since a request's
    first ones cost more for each frame than the others.
    """

    def __init__(self) -> None:
        self._steps = 0
        self._seconds = self._frames = self._weight = 0.0
        """Sums over the steps, each weighted by how many came after it."""

    def measure(self, frames: int, seconds: float, now_s: float) -> None:
        """Add a step, as `StepTimeModel.measure`."""
        if frames < 1:
            return
        self._steps += 1
        if self._steps <= _SETTLING_STEPS:
            return
        if self._weight:
            seconds = min(seconds, _MAX_STEPS * self._seconds / self._weight)
        self._seconds = self._seconds * _FADING + seconds
        self._frames = self._frames * _FADING + frames
        self._weight = self._weight * _FADING + 1

    @property
    def cost(self) -> StepCost | None:
        """The mean; None before a frame was measured."""
        if not self._frames:
            return None
        return StepCost(0.0, max(self._seconds / self._frames, _MIN_SLOPE_S))
