"""Integrates a flow from noise to a mel spectrogram: Kutta's 3/8 rule on a bent grid of times."""

from __future__ import annotations

from collections.abc import Callable
from itertools import pairwise

import torch

STEPS = 9
STAGES = 4
"""Evaluations of one step."""

Velocity = Callable[[int, torch.Tensor], torch.Tensor]
"""The number of the evaluation, and the state -> its derivative, of the same shape."""


def time_grid() -> torch.Tensor:
    """[STEPS + 1] float32 times from 0 to 1, denser at the beginning ("sway sampling", Chen et al.,
    F5-TTS, arXiv:2410.06885, with coefficient -1)."""
    even = torch.linspace(0, 1, STEPS + 1)
    return even - (torch.cos(torch.pi / 2 * even) - 1 + even)


def evaluation_times() -> torch.Tensor:
    """[STEPS * STAGES] float32: when each evaluation takes place."""
    third = 1 / 3
    times = [
        torch.stack([start, start + step * third, start + step * (2 * third), end])
        for start, end in pairwise(time_grid())
        for step in [end - start]
    ]
    return torch.cat(times)


def integrate(velocity: Velocity, state: torch.Tensor) -> torch.Tensor:
    """Return the state at time 1, from that at time 0."""
    third, number = 1 / 3, 0
    for start, end in pairwise(time_grid().tolist()):
        step = end - start
        first = velocity(number, state)
        second = velocity(number + 1, state + step * third * first)
        later = velocity(number + 2, state + step * (second - third * first))
        last = velocity(number + 3, state + step * (first - second + later))
        state = state + step / 8 * (first + 3 * (second + later) + last)
        number += STAGES
    return state
