"""The networks make what the reference package makes."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from cantata_models.kokoro.tests.network_driver import differences, speak_whole
from cantata_models.kokoro.tests.parity.scenarios import (
    SCENARIOS,
    KokoroCheckpointKey,
    KokoroScenario,
)
from cantata_models.kokoro.tests.parity.write_goldens import GOLDENS, checksum


def test_the_checkpoints_are_those_of_the_goldens(
    checkpoints: dict[KokoroCheckpointKey, Path],
) -> None:
    expected = json.loads((GOLDENS / "checksums.json").read_text())
    assert {key.name: checksum(folder) for key, folder in checkpoints.items()} == expected


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_durations_curves_and_sound_are_the_reference_s(
    checkpoints: dict[KokoroCheckpointKey, Path], scenario: KokoroScenario
) -> None:
    spoken = speak_whole(checkpoints[scenario.checkpoint], scenario)
    assert differences(spoken, scenario) == []
