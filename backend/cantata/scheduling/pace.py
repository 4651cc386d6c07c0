"""What a stage's steps take, by the steps that it has taken.

A step takes a fixed time and some for each frame that it makes: t(n) = a + b n. Nothing here knows
a model or reads a clock: times come in as numbers.

What changes with a machine's other work is how fast all steps are; how a step grows with its frames
hardly changes. A Kalman filter says just that of a and b: their common speed drifts, the rest keeps
still. So after an hour with one listener, on a machine that has become busy meanwhile, it is still
known what eight would cost, at the speed of now.
"""

from __future__ import annotations

from cantata.contract.steps import StepCost

_NOISE = 0.3
"""How far a step's time is from the mean, as a part of it."""
_SPEED_DRIFT = 0.004
"""Of the speed, from one step to the next: about the last hundred steps count."""
_SHAPE_DRIFT = 0.0004
"""Of a and b by themselves."""
_SETTLING_STEPS = 4
"""The first steps of a process also load kernels and memory; they are not counted."""
_LEAST_SLOPE_S = 1e-6
"""A frame is never free."""


class Pace:
    """Fits t(n) to the steps."""

    def __init__(self) -> None:
        self._steps = 0
        self._fixed_s = 0.0
        """a"""
        self._frame_s = 0.0
        """b"""
        self._doubt = (0.0, 0.0, 0.0)
        """Covariance of a and b: of a, of both, of b."""

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
        if not self._frame_s:
            self._begin(frames, seconds)
            return
        self._drift(frames)
        self._correct(frames, seconds)

    @property
    def cost(self) -> StepCost | None:
        """The fit; None before a step was measured."""
        return StepCost(self._fixed_s, self._frame_s) if self._frame_s else None

    def _begin(self, frames: int, seconds: float) -> None:
        """All of the time is taken to grow with the frames, until steps of another size show how
        much does not: nothing is promised that was not measured."""
        self._frame_s = max(seconds / frames, _LEAST_SLOPE_S)
        doubt = self._frame_s**2
        self._doubt = (doubt * frames**2, -doubt * frames, doubt)

    def _drift(self, frames: int) -> None:
        fixed, both, frame = self._doubt
        speed, shape = _SPEED_DRIFT**2, _SHAPE_DRIFT**2
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
        news_s = seconds - expected_s
        step_s = expected_s + (of_fixed + of_frame * frames) * news_s
        frame_s = self._frame_s + of_frame * news_s
        # Neither is below zero.
        self._frame_s = max(min(frame_s, step_s / frames), _LEAST_SLOPE_S)
        self._fixed_s = step_s - self._frame_s * frames
