"""scheduler/scheduler_config.json: how much noise is left at each step."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen_image.config.parts import require_false, require_one_of

TIMESTEPS = 1000
FEW_STEPS_SHIFT = math.log(3)
"""Both shifts of checkpoints that were distilled to few steps."""


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """Values of FlowMatchEulerDiscreteScheduler."""

    dynamic: bool
    """Whether the shift follows from a picture's size."""
    shift: float
    """Of all sizes, if it is not dynamic."""
    min_tokens: int
    """Where the dynamic shift is `base_shift`, as the next two."""
    max_tokens: int
    base_shift: float
    max_shift: float
    terminal: float
    """The last step's share of noise; 0: as the shift leaves it."""

    @property
    def few_steps(self) -> bool:
        """Whether these are the settings of distilled weights, which take no guidance."""
        shifts = (self.base_shift, self.max_shift)
        few = all(math.isclose(shift, FEW_STEPS_SHIFT, abs_tol=1e-4) for shift in shifts)
        return self.dynamic and few and self.terminal == 0


def few_steps_schedule() -> ScheduleConfig:
    """The schedule that Lightning's weights were distilled with, for any size."""
    return ScheduleConfig(
        dynamic=True,
        shift=1.0,
        min_tokens=256,
        max_tokens=8192,
        base_shift=FEW_STEPS_SHIFT,
        max_shift=FEW_STEPS_SHIFT,
        terminal=0.0,
    )


def read_schedule(fields: JsonFields) -> ScheduleConfig:
    """Read a scheduler's config; unknown keys are ignored.

    Raises:
        ConfigError: a value is of the wrong type or not served.
    """
    require_false(
        fields,
        "invert_sigmas",
        "stochastic_sampling",
        "use_beta_sigmas",
        "use_exponential_sigmas",
        "use_karras_sigmas",
    )
    kind = fields.get("time_shift_type", str, "exponential")
    require_one_of(fields, "time_shift_type", kind, ("exponential",))
    trained = fields.get("num_train_timesteps", int, TIMESTEPS)
    require_one_of(fields, "num_train_timesteps", trained, (TIMESTEPS,))
    config = ScheduleConfig(
        dynamic=fields.get("use_dynamic_shifting", bool, False),
        shift=fields.get("shift", float, 1.0),
        min_tokens=fields.get("base_image_seq_len", int, 256),
        max_tokens=fields.get("max_image_seq_len", int, 4096),
        base_shift=fields.get("base_shift", float, 0.5),
        max_shift=fields.get("max_shift", float, 1.15),
        terminal=fields.get("shift_terminal", float, 0.0),
    )
    if config.min_tokens >= config.max_tokens or not 0 <= config.terminal < 1:
        raise ConfigError(
            f"{fields.where}: base_image_seq_len must be below max_image_seq_len and "
            f"shift_terminal 0 to 1, not {config.min_tokens}, {config.max_tokens} and "
            f"{config.terminal}"
        )
    return config
