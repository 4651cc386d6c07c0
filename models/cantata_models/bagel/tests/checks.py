"""Comparisons with the goldens. Each names what it must not differ in."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from cantata_models.bagel.tests.parity.conversations import Conversation
from cantata_models.bagel.tests.parity.scenarios import GOLDENS, BagelScenario, kept_pixels
from model_engines import assert_pixels

LATENT = 1e-4
"""Between float32 programs that add in another order, at a standard deviation of 1."""
CLEAR = 1e-3
"""How far the likeliest token must lead, for rounding not to choose another."""
SHARE_APART = 0.01
"""Of a picture's values, whose fractions are cut off: how many rounding may move."""


@cache
def goldens() -> Mapping[str, NDArray[Any]]:
    """Everything that was recorded."""
    with np.load(GOLDENS) as file:
        return dict(file)


def check_scenario(studio: Any, scenario: BagelScenario) -> None:
    """Draw a scenario's picture, and compare everything."""
    drawn, theirs = studio.draw(scenario.request()), goldens()
    assert (drawn.thought is not None) == scenario.thinks
    assert theirs.get(f"{scenario.name}/gap", np.inf) > CLEAR
    expected = theirs[f"{scenario.name}/latents"]
    np.testing.assert_array_equal(drawn.latents[0], expected[0])
    np.testing.assert_allclose(drawn.latents, expected, rtol=0, atol=LATENT)
    check_pixels(kept_pixels(drawn.pixels), theirs[f"{scenario.name}/pixels"])


def check_answer(studio: Any, conversation: Conversation) -> None:
    """Answer a conversation, and compare the tokens."""
    assert goldens()[f"{conversation.name}/gap"] > CLEAR
    (tokens,) = studio.finish([studio.begin_answer(conversation.request())])
    np.testing.assert_array_equal(tokens, goldens()[f"{conversation.name}/tokens"])


def check_pixels(ours: NDArray[np.uint8], theirs: NDArray[np.uint8]) -> None:
    """Equal but for rounding."""
    assert_pixels(ours, theirs, SHARE_APART)
