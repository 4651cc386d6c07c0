"""How much noise a picture has before each step."""

from __future__ import annotations

import torch


def noise_times(steps: int, shift: float) -> tuple[float, ...]:
    """The shares of noise before each step, and 0 after the last.

    The reference counts points in time: its 50 are 49 steps here.

    Args:
        steps: at least 1.
        shift: above 1, more of the steps are spent on much noise.
    """
    times = torch.linspace(1, 0, steps + 1)
    # In float32, as the reference: what lies inside an interval depends on it.
    return tuple((shift * times / (1 + (shift - 1) * times)).tolist())
