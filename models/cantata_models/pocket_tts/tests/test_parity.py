"""The stages make what the reference package makes, with the same noise and alone or together."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest

from cantata.contract.data.chunks import Rows
from cantata_models.pocket_tts.tests.parity.scenarios import (
    CHECKPOINTS,
    SCENARIOS,
    PocketScenario,
    write,
)
from cantata_models.pocket_tts.tests.parity.write_goldens import GOLDENS, PCM_STRIDE, checksum
from cantata_models.pocket_tts.tests.stage_driver import (
    Floats,
    PocketCheckpoints,
    ask,
    golden,
    to_frames,
)
from recorded_frames import recorded_frames

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

TOLERANCE = 1e-4
Alone = Callable[[PocketScenario], list[Floats]]
RECORDED = [scenario for scenario in SCENARIOS if scenario.seconds]


def by_name(scenario: PocketScenario) -> str:
    return scenario.name


@pytest.fixture(scope="module")
def alone(checkpoints: PocketCheckpoints) -> Alone:
    """What the talker makes of a scenario without company, asked once for all tests."""

    @cache
    def made(scenario: PocketScenario) -> list[Floats]:
        return to_frames(checkpoints.get(scenario.checkpoint), scenario)

    return made


def test_the_checkpoints_are_those_of_the_goldens(tmp_path: Path) -> None:
    expected = json.loads((GOLDENS / "checksums.json").read_text())
    assert {name: checksum(write(name, tmp_path)) for name in CHECKPOINTS} == expected


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=by_name)
def test_latents_and_sound_are_the_reference_s(
    checkpoints: PocketCheckpoints, alone: Alone, scenario: PocketScenario
) -> None:
    pieces, theirs = alone(scenario), golden(scenario, "latents")
    counts = [len(frames) for frames in pieces]
    assert counts == golden(scenario, "frames").tolist(), "each piece ends where theirs does"
    ours = np.concatenate(pieces)[:, : theirs.shape[1]]
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=TOLERANCE)
    loaded = checkpoints.get(scenario.checkpoint)
    sound = np.concatenate([loaded.decode(frames) for frames in pieces])
    assert len(sound) == sum(counts) * loaded.decoder.samples_per_frame
    np.testing.assert_allclose(sound[::PCM_STRIDE], golden(scenario, "pcm"), rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("scenario", RECORDED, ids=by_name)
def test_recordings_are_encoded_as_the_reference_s(
    checkpoints: PocketCheckpoints, scenario: PocketScenario
) -> None:
    loaded = checkpoints.get(scenario.checkpoint)
    (piece,) = loaded.builder.build("request", ask(scenario))
    (chunk,) = loaded.encoded(piece)
    assert isinstance(chunk.payload, Rows)
    theirs = golden(scenario, "voice")
    np.testing.assert_allclose(chunk.payload.values, theirs, rtol=0, atol=TOLERANCE)


@pytest.mark.parametrize("every", [0, 1])
def test_company_changes_no_bit(checkpoints: PocketCheckpoints, alone: Alone, every: int) -> None:
    """Other voices, steps, noises and lengths beside it, begun together or one by one."""
    mixed = [scenario for scenario in SCENARIOS if scenario.checkpoint == "tiny"][1:9]
    loaded = checkpoints.get("tiny")
    requests = [
        piece for scenario in mixed for piece in loaded.builder.build(scenario.name, ask(scenario))
    ]
    made = loaded.talk(requests, every)
    for scenario in mixed:
        (usual,) = alone(scenario)
        np.testing.assert_array_equal(made[f"{scenario.name}-0"], usual, err_msg=scenario.name)


def test_latents_are_the_same_from_recorded_completion(
    checkpoints: PocketCheckpoints, alone: Alone
) -> None:
    mixed = [one for one in SCENARIOS if one.checkpoint == "tiny" and one.steps == 1][:6]
    loaded = checkpoints.get("tiny")
    requests = [loaded.builder.build(one.name, ask(one))[0] for one in mixed]
    with recorded_frames(loaded.network):
        made = loaded.talk(requests, every=1)
    for scenario in mixed:
        (usual,) = alone(scenario)
        np.testing.assert_array_equal(made[f"{scenario.name}-0"], usual, err_msg=scenario.name)
