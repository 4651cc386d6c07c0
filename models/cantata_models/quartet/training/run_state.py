"""What both trainings share: a budget of time, the running mean of the weights, checkpoints, and a
curve as lines of JSON."""

from __future__ import annotations

import json
import logging
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cantata_models.quartet.network import SpeakerTable

logger = logging.getLogger(__name__)

LAST_RATE = 0.05
MEAN_DECAY = 0.99
LEAST_DEVIATION = 1e-2
"""Of a feature."""


@dataclass(frozen=True, slots=True)
class TimeBudget:
    """How long a training may run on, by the clock."""

    seconds: float
    cool_seconds: float = 0.0
    """At the end, in which the rate falls on a line."""
    began: float = field(default_factory=time.monotonic)

    @property
    def left_s(self) -> float:
        """Less than 0 when it is spent."""
        return self.began + self.seconds - time.monotonic()

    def find_scale(self) -> float:
        """Of the rate: 1, and `LAST_RATE` at the end."""
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


def save_checkpoint(path: Path, state: Mapping[str, Any]) -> None:
    """Writes a checkpoint. If that is interrupted, the old one survives."""
    path.parent.mkdir(parents=True, exist_ok=True)
    part = path.with_suffix(".part")
    torch.save(dict(state), part)
    part.replace(path)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """None: there is none."""
    if not path.exists():
        return None
    saved: dict[str, Any] = torch.load(path, weights_only=True)
    return saved


def log_figures(path: Path, figures: Mapping[str, Any]) -> None:
    """Appends a line of JSON to a curve."""
    line = {k: round(v, 5) if isinstance(v, float) else v for k, v in figures.items()}
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("a") as log:
        log.write(json.dumps(line) + "\n")
    logger.info("%s", line)


@torch.no_grad()
def fit_features(table: SpeakerTable, features: NDArray[np.float32]) -> None:
    """Sets what is usual of [R, FEATURES] recordings' features."""
    table.mean.copy_(torch.from_numpy(features.mean(axis=0)))
    table.scale.copy_(torch.from_numpy(features.std(axis=0)).clamp(min=LEAST_DEVIATION))
