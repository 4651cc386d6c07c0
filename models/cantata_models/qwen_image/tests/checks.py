"""Comparisons with the goldens. Each names what it must not differ in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_models.qwen_image.tests.parity.scenarios import (
    GOLDENS,
    QwenImageScenario,
    kept_latents,
    kept_pixels,
    kept_rows,
)
from model_engines import assert_pixels

EMBEDDING, LATENT = 1e-4, 2e-4
"""Between float32 programs that add in another order, at a standard deviation of 1."""
SHARE_APART = 0.002
"""Of a picture's values: how many rounding may move."""


@cache
def goldens() -> Mapping[str, NDArray[Any]]:
    """Everything that was recorded."""
    with np.load(GOLDENS / "pictures.npz") as file:
        return dict(file)


def check_scenario(studio: Any, scenario: QwenImageScenario) -> None:
    """Draw a scenario's pictures, together, and compare everything."""
    drawn = studio.draw_together(scenario.requests())
    theirs = goldens()
    check_embeddings(drawn[0], scenario)
    latents = kept_latents(np.stack([made.latents for made in drawn]))
    np.testing.assert_allclose(latents, theirs[f"{scenario.name}/latents"], rtol=0, atol=LATENT)
    pixels = kept_pixels(np.stack([made.pixels for made in drawn]))
    check_pixels(pixels, theirs[f"{scenario.name}/pixels"])


def check_embeddings(drawn: Any, scenario: QwenImageScenario) -> None:
    """Of the prompt, and of the negative prompt if the picture is guided."""
    theirs = goldens()
    for port in ("condition", "negative"):
        if (name := f"{scenario.name}/{port}") in theirs:
            ours = drawn.rows(port)
            np.testing.assert_array_equal(len(ours), theirs[f"{name}_rows"])
            np.testing.assert_allclose(kept_rows(ours), theirs[name], rtol=0, atol=EMBEDDING)


def check_pixels(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> None:
    """Equal but for rounding."""
    assert_pixels(ours, theirs, SHARE_APART)
