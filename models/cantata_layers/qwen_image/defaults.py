"""What a checkpoint draws with unless a request says otherwise.

A checkpoint is served with the LoRA files in its folder `loras`. Some make a model draw in few
steps, without guidance and with a schedule of their own; only the names that they are published
with tell which.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.qwen_image.config import ScheduleConfig, few_steps_schedule

NAME = re.compile(r"lightning.*?(?P<steps>\d+)[-_ ]?steps?(?![a-z])", re.IGNORECASE)
STEPS, GUIDANCE = 50, 4.0
"""A request's defaults, as the next two."""
FEW_STEPS, NO_GUIDANCE = 8, 1.0


@dataclass(frozen=True, slots=True)
class DrawingDefaults:
    """What a request draws with unless it says otherwise."""

    steps: int
    guidance: float
    """1: none."""
    schedule: ScheduleConfig


def drawing_defaults(schedule: ScheduleConfig, loras: Sequence[LoraFile]) -> DrawingDefaults:
    steps = [int(match["steps"]) for lora in loras if (match := NAME.search(lora.path.name))]
    if steps:
        return DrawingDefaults(min(steps), NO_GUIDANCE, few_steps_schedule())
    if schedule.few_steps:
        return DrawingDefaults(FEW_STEPS, NO_GUIDANCE, schedule)
    return DrawingDefaults(STEPS, GUIDANCE, schedule)


FOLDER = "loras"
STRENGTH = re.compile(r"@(?P<strength>\d+(?:\.\d+)?)$")
"""At the end of a file's name, before `.safetensors`."""


@dataclass(frozen=True, slots=True)
class LoraFile:
    """One file, and how strongly it acts."""

    path: Path
    strength: float = 1.0


def lora_files(checkpoint: Path) -> tuple[LoraFile, ...]:
    """Return them in the order of their names; `style@0.8.safetensors` acts with 0.8. Raises
    ConfigError: the folder holds something else."""
    folder = checkpoint / FOLDER
    paths = sorted(folder.iterdir()) if folder.is_dir() else []
    if other := [path.name for path in paths if path.suffix != ".safetensors"]:
        raise ConfigError(f"{folder}: {other[0]!r} is no LoRA file; valid: *.safetensors")
    return tuple(LoraFile(path, _read_strength(path)) for path in paths)


def _read_strength(path: Path) -> float:
    match = STRENGTH.search(path.stem)
    return float(match["strength"]) if match else 1.0
