"""How much noise is left at each step.

It is FlowMatchEulerDiscreteScheduler.set_timesteps of diffusers, of which these are the lines that
the published settings use; in float32 as there, so that the numbers are the same.
"""

from __future__ import annotations

import math

import numpy as np

from cantata_layers.qwen_image.config import ScheduleConfig


def noise_shares(config: ScheduleConfig, steps: int, tokens: int) -> tuple[float, ...]:
    """The share of noise before each step, and 0 after the last.

    Args:
        steps: at least 1.
        tokens: of the picture that is drawn.

    Returns:
        `steps + 1` values that fall from at most 1.
    """
    even = np.linspace(1.0, 1 / steps, steps).astype(np.float32)
    if config.dynamic:
        factor = math.exp(_shift(config, tokens))
        shares = factor / (factor + (1 / even - 1) ** 1.0)
    else:
        shares = config.shift * even / (1 + (config.shift - 1) * even)
    if config.terminal and shares[-1] < 1:
        drawn = 1 - shares
        shares = 1 - drawn / (drawn[-1] / (1 - config.terminal))
    return (*(float(share) for share in shares.astype(np.float32)), 0.0)


def _shift(config: ScheduleConfig, tokens: int) -> float:
    """Linear in the number of tokens, also outside the range that the two points span."""
    slope = (config.max_shift - config.base_shift) / (config.max_tokens - config.min_tokens)
    return tokens * slope + (config.base_shift - slope * config.min_tokens)
