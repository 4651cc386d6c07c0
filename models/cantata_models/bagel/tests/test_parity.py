"""The noise, every step's latents and the pictures are those of the publisher's code."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import pytest

from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.checks import check_scenario, goldens
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.scenarios import SCENARIOS, SEED, BagelScenario
from threads import threads


@pytest.fixture(scope="module")
def studio(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Studio]:
    with threads(1):
        yield Studio(write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED))


@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_a_picture_is_drawn_as_the_reference_draws_it(
    scenario: BagelScenario, studio: Studio
) -> None:
    check_scenario(studio, scenario)


def test_pictures_are_the_same_bit_for_bit_alone_and_in_company(studio: Studio) -> None:
    """Of any size, guidance, depth and phase: pictures, changed ones, and those that think."""
    requests = [scenario.request() for scenario in SCENARIOS]
    together = studio.draw_together(requests)
    for request, beside in zip(requests, together, strict=True):
        alone = studio.draw(request)
        np.testing.assert_array_equal(beside.latents, alone.latents)
        np.testing.assert_array_equal(beside.pixels, alone.pixels)
        assert beside.thought == alone.thought


def test_the_goldens_differ() -> None:
    latents = [goldens()[f"{scenario.name}/latents"][-1] for scenario in SCENARIOS]
    assert len({values.tobytes() for values in latents}) == len(latents)
    assert all(abs(values).max() < 30 and values.std() > 0.3 for values in latents)
