"""Recognises LoRA files that make a model draw in few steps, by the names they are published with.

The tensors do not say it. Such weights take no guidance, and a schedule of their own.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass

from cantata_layers.qwen_image.config.schedule import ScheduleConfig, few_steps_schedule
from cantata_layers.qwen_image.lora.folder import LoraFile

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
    """Return the defaults of a checkpoint with these files."""
    steps = [int(match["steps"]) for lora in loras if (match := NAME.search(lora.path.name))]
    if steps:
        return DrawingDefaults(min(steps), NO_GUIDANCE, few_steps_schedule())
    if schedule.few_steps:
        return DrawingDefaults(FEW_STEPS, NO_GUIDANCE, schedule)
    return DrawingDefaults(STEPS, GUIDANCE, schedule)
