"""What both trainings share: a budget of time, the running mean of the weights, checkpoints."""

from __future__ import annotations

import time
from collections.abc import Mapping
from copy import deepcopy
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, TypeVar

import numpy as np
import torch
from numpy.typing import NDArray
from torch import nn

from cantata_layers.training.device import CPU
from cantata_models.quartet.network import SpeakerTable

Part = TypeVar("Part", bound=nn.Module)

LAST_RATE = 0.05
MEAN_DECAY = 0.99
MIN_DEVIATION = 1e-2
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


def place_mean(part: Part, device: torch.device) -> Part:
    """Return where a part's running mean is kept: in itself on the CPU, else in a copy on the
    device, which `write_back` writes into it."""
    return part if device.type == "cpu" else deepcopy(part).to(device)


def write_back(mean: Part, part: Part) -> None:
    """Write the running mean into the part that is judged and saved, on the CPU."""
    if mean is not part:
        part.load_state_dict(mean.state_dict())


@torch.no_grad()
def update_mean(mean: nn.Module, trained: nn.Module, steps: int) -> None:
    """Moves the running mean of the weights, which is what is judged and exported."""
    decay = min(MEAN_DECAY, steps / (steps + 10))
    mine = list[torch.Tensor](mean.parameters())
    theirs = list[torch.Tensor](trained.parameters())
    torch._foreach_lerp_(mine, theirs, 1 - decay)


def load_checkpoint(path: Path) -> dict[str, Any] | None:
    """Return a checkpoint on the CPU, wherever it was made, or None if there is none."""
    if not path.exists():
        return None
    saved: dict[str, Any] = torch.load(path, map_location=CPU, weights_only=True)
    return saved


def copy_weights(module: nn.Module) -> dict[str, torch.Tensor]:
    """Return a module's weights on the CPU, as a checkpoint has them on any device."""
    return {name: tensor.cpu() for name, tensor in module.state_dict().items()}


def read_figures(figures: Mapping[str, torch.Tensor]) -> dict[str, float]:
    """Read figures, [] each, from their device. The host waits for it once."""
    values = torch.stack([value.detach() for value in figures.values()]).tolist()
    return dict(zip(figures, values, strict=True))


@torch.no_grad()
def fit_features(table: SpeakerTable, features: NDArray[np.float32]) -> None:
    """Sets what is usual of [R, FEATURES] recordings' features, unless the table has learnt with it
    already."""
    if table.mean.any():
        return
    table.mean.copy_(torch.from_numpy(features.mean(axis=0)))
    table.scale.copy_(torch.from_numpy(features.std(axis=0)).clamp(min=MIN_DEVIATION))
