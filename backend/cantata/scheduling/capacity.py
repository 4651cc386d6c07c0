"""How many listeners a pipeline serves without gaps, by the times of its stages' steps.

Two conditions must hold. Each stage keeps up: it makes one frame for each listener within the
usable part of a frame period. And a listener that has just started gets its next frame in time in
the worst case: through a step of the first stage with all requests, then at each later stage behind
a batch that has just begun, behind a new stream's first chunk, and in a batch of its own.
Nothing here knows a model or reads a clock.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

from cantata.contract.process.messages import StepCost

USABLE = 0.8
"""Part of the frame period that a stage's steps may take; the rest is for prompts, messages and
other work on the machine."""
IN_TIME = 1.5
"""Frame periods that a frame's whole path may take: two frames, which a listener under load has at
least (see `JitterEstimator`), less the time for new prompts: nearly half a period between two
steps."""


@dataclass(frozen=True, slots=True)
class StagePace:
    """The cost of one stage's steps."""

    cost: StepCost
    max_batch_frames: int | None = None
    """Maximum frames in one step; None: one per listener."""


def compute_places(stages: Sequence[StagePace], frame_period_s: float, slots: int) -> int:
    """Listeners that may be admitted: 1 to `slots`.

    Args:
        stages: those that have measured their steps, in the pipeline's order.
        frame_period_s: seconds of sound in one frame.
        slots: requests that the stages hold at most.
    """
    fitting = (n for n in range(slots, 1, -1) if _are_in_time(stages, n, frame_period_s))
    return next(fitting, 1)


def _are_in_time(stages: Sequence[StagePace], listeners: int, frame_period_s: float) -> bool:
    way_s = 0.0
    for number, stage in enumerate(stages):
        frames = min(listeners, stage.max_batch_frames or listeners)
        step_s = stage.cost.seconds(frames)
        if step_s * listeners / frames > USABLE * frame_period_s:
            return False
        way_s += step_s if number == 0 else 2 * step_s + stage.cost.seconds(1)
    return way_s <= IN_TIME * frame_period_s
