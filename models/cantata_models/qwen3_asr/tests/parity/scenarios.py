"""The sounds that both the reference and this implementation recognize, all of them greedily."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata_layers.omni.tests.media import sound

GOLDENS = Path(__file__).parents[1] / "goldens"
MIN_GAP = 1e-3
"""If the two best scores are closer than this, rounding alone could swap them."""
MAX_TOKENS = 24
"""Of an answer."""


@dataclass(frozen=True, slots=True)
class Qwen3AsrScenario:
    """One window of sound."""

    name: str
    samples: NDArray[np.float32]
    """[N]"""
    language: str | None = None
    """BCP 47 tag."""
    prompt: str = ""
    seed: int = 1
    """Of the tiny checkpoint."""
    is_tied: bool = False
    """Whether the checkpoint's head is its table of embeddings."""


def _sweep(seconds: float, seed: int) -> NDArray[np.float32]:
    return sound(seconds, seed).samples


SCENARIOS: tuple[Qwen3AsrScenario, ...] = (
    Qwen3AsrScenario("auto", _sweep(2.3, 1)),
    Qwen3AsrScenario("english", _sweep(1.7, 2), "en"),
    Qwen3AsrScenario("chinese_named", _sweep(3.1, 3), "zh", "通义千问, 阿里云, 2026 年"),
    Qwen3AsrScenario("named", _sweep(2.0, 4), None, "Names:\n Zoë, O'Neill \n\n GmbH & Co."),
    Qwen3AsrScenario("filipino", _sweep(1.2345, 5), "fil", seed=3),
    Qwen3AsrScenario("short", _sweep(0.2, 6)),
    Qwen3AsrScenario("under_a_second", _sweep(0.73, 7), "de"),
    Qwen3AsrScenario("one_attention_window", _sweep(8.0, 8), "en", seed=3),
    Qwen3AsrScenario("long", _sweep(29.97, 9), "en", "The long one."),
    Qwen3AsrScenario("silence", np.zeros(24_000, np.float32)),
    Qwen3AsrScenario("loud", np.clip(8 * _sweep(1.5, 10), -1, 1), "yue", seed=3),
    Qwen3AsrScenario("tied", _sweep(2.6, 11), "ja", seed=5, is_tied=True),
)


def scenario_named(name: str) -> Qwen3AsrScenario:
    return next(scenario for scenario in SCENARIOS if scenario.name == name)
