"""What both trainings share: a budget of time, the running mean of the weights, checkpoints."""

from __future__ import annotations

import time
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cantata_models.quartet.network import SpeakerTable

LAST_RATE = 0.05
MEAN_DECAY = 0.99
LEAST_DEVIATION = 1e-2
"""The least deviation of a feature."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long a training may run on, by the clock."""

    seconds: float
    cool_seconds: float = 0.0
    """Seconds at the end in which the rate falls linearly."""
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Seconds that are left; negative once the budget is spent."""
        return self.began + self.seconds - time.monotonic()

    def find_scale(self) -> float:
        """Return the factor of the rate: 1 at first, `LAST_RATE` at the end."""
        if self.left_s >= self.cool_seconds:
            return 1.0
        return LAST_RATE + (1 - LAST_RATE) * max(self.left_s, 0.0) / self.cool_seconds


@torch.no_grad()
def update_mean(mean: nn.Module, trained: nn.Module, steps: int) -> None:
    """Moves the running mean of the weights, which is what is judged and exported."""
    decay = min(MEAN_DECAY, steps / (steps + 10))
    mine = list[torch.Tensor](mean.parameters())
    theirs = list[torch.Tensor](trained.parameters())
    torch._foreach_lerp_(mine, theirs, 1 - decay)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Return a checkpoint, or None if there is none."""
    if not path.exists():
        return None
    saved: dict[str, Any] = torch.load(path, weights_only=True)
    return saved


@torch.no_grad()
def fit_features(table: SpeakerTable, features: NDArray[np.float32]) -> None:
    """Sets what is usual of [R, FEATURES] recordings' features, unless the table has learnt with it
    already."""
    if table.mean.any():
        return
    table.mean.copy_(torch.from_numpy(features.mean(axis=0)))
    table.scale.copy_(torch.from_numpy(features.std(axis=0)).clamp(min=LEAST_DEVIATION))
