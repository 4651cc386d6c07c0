"""Embeddings, every step's latents and the pictures are those of diffusers."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import numpy as np
import pytest

from cantata_models.qwen_image.tests.checks import check_scenario, goldens
from cantata_models.qwen_image.tests.drawing import Studio
from cantata_models.qwen_image.tests.parity.scenarios import (
    SCENARIOS,
    QwenImageScenario,
    checkpoint_for,
    kept_rows,
    scenario_named,
)
from threads import threads

PICTURES_SEEN = [scenario for scenario in SCENARIOS if scenario.references]
SAME_POSITIONS = 0.05
"""Embeddings are further apart than that if pictures stand in a line of text."""


class Studios:
    """One for each checkpoint."""

    def __init__(self, folder: Path) -> None:
        self._folder = folder
        self._made: dict[Path, Studio] = {}

    def of(self, scenario: QwenImageScenario) -> Studio:
        checkpoint = checkpoint_for(scenario, self._folder)
        if checkpoint not in self._made:
            self._made[checkpoint] = Studio(checkpoint)
        return self._made[checkpoint]


@pytest.fixture(scope="module")
def studios(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studios]:
    with threads(1):
        yield Studios(tmp_path_factory.mktemp("checkpoints"))


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_picture_is_drawn_as_the_reference_draws_it(
    scenario: QwenImageScenario, studios: Studios
) -> None:
    check_scenario(studios.of(scenario), scenario)


@pytest.mark.parametrize("scenario", PICTURES_SEEN, ids=lambda scenario: scenario.name)
def test_pictures_in_prompts_have_the_positions_that_the_reference_drops(
    scenario: QwenImageScenario, studios: Studios
) -> None:
    """diffusers 0.42.1 does not tell transformers 5 which tokens are pictures. The goldens hold
    embeddings with that, which are compared above, and without."""
    ours = studios.of(scenario).draw(scenario.requests()[0]).rows("condition")
    without = goldens()[f"{scenario.name}/condition_as_published"]
    assert np.abs(kept_rows(ours) - without).max() > SAME_POSITIONS


def test_the_pictures_of_a_batch_differ() -> None:
    pixels = goldens()["batch/pixels"]
    assert len({picture.tobytes() for picture in pixels}) == len(pixels)


def test_a_long_prompt_is_cut() -> None:
    assert goldens()["long/condition_rows"] == 512
    assert scenario_named("long").prompt.count(",") > 300
