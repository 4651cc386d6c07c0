"""Who speaks: voices as published, and mixtures of them as further speakers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import numpy.typing as npt

from cantata_models.solo.training.natural.packages import STYLE_SIZE, read_styles
from cantata_models.solo.training.natural.teachers import TeachingVoice

HEART = TeachingVoice("heart", british=False)
STOCK = ("af_heart", "am_michael", "bf_emma", "bm_george")
"""Two women and two men of two accents, from whom the served voices will be made."""
HELD_OUT_VOICES = ("am_puck", "bf_lily")
"""In no mixture and never trained on: they show what the codec makes of strangers."""
MIXTURES = 200
_TIMBRE = (0.15, 0.85)
"""A mixture that is nearer to one voice is that voice."""


def list_stock_voices(packages: Path) -> tuple[TeachingVoice, ...]:
    """Raises: PackageMissing: the styles are not there."""
    styles = read_styles(packages)
    return tuple(find_voice(name, styles) for name in STOCK)


def find_voice(name: str, styles: Mapping[str, npt.NDArray[np.float32]]) -> TeachingVoice:
    """A voice by its name, whose first letter is its accent."""
    return TeachingVoice(name, british=name[0] == "b", styles=styles[name])


def mix_voices(packages: Path, count: int = MIXTURES, seed: int = 6) -> tuple[TeachingVoice, ...]:
    """Pseudo-speakers: two voices of one sex, their timbre and prosody mixed by different weights.

    With the same seed, a larger count begins with the same speakers.

    Raises:
        PackageMissing: the styles are not there.
    """
    styles = read_styles(packages)
    known = [name for name in styles if name not in HELD_OUT_VOICES]
    rng, mixed = np.random.default_rng(seed), []
    for number in range(count):
        sex = "fm"[number % 2]
        one, two = rng.choice([name for name in known if name[1] == sex], 2, replace=False)
        shares = np.repeat([rng.uniform(*_TIMBRE), rng.uniform(0, 1)], STYLE_SIZE // 2)
        weights = shares.astype(np.float32)
        rows = min(len(styles[one]), len(styles[two]))
        table = weights * styles[one][:rows] + (1 - weights) * styles[two][:rows]
        mixed.append(TeachingVoice(f"mix{sex}{number:03d}", british=one[0] == "b", styles=table))
    return tuple(mixed)
