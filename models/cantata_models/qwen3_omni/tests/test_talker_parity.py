"""The served talker says what the reference says, in every layout, and to anyone beside it."""

from __future__ import annotations

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Codes, Rows
from cantata_models.qwen3_omni.tests.parity.scenarios import (
    SCENARIOS,
    Qwen3OmniScenario,
    scenario_named,
)
from cantata_models.qwen3_omni.tests.parity.write_goldens import ROW_STRIDE, rms
from cantata_models.qwen3_omni.tests.talker_driver import (
    Qwen3OmniCheckpoints,
    check,
    golden,
    shortened,
)
from model_engines import checkpoints_fixture
from recorded_frames import recorded_frames

pytestmark = pytest.mark.vllm
checkpoints = checkpoints_fixture(Qwen3OmniCheckpoints, "module")

SPOKEN = [scenario for scenario in SCENARIOS if scenario.speaker is not None]
by_name = pytest.mark.parametrize("scenario", SPOKEN, ids=lambda scenario: scenario.name)


@pytest.mark.thorough(every=3)
@by_name
def test_every_frame_and_score_is_the_reference_s(
    checkpoints: Qwen3OmniCheckpoints, scenario: Qwen3OmniScenario
) -> None:
    check(checkpoints.get(scenario.seed), scenario)


@by_name
def test_every_input_row_is_the_reference_s(
    checkpoints: Qwen3OmniCheckpoints, scenario: Qwen3OmniScenario
) -> None:
    checkpoint = checkpoints.get(scenario.seed)
    spoken, talker = checkpoint.spoken(scenario), checkpoint.talker
    with torch.inference_mode():
        source = talker.open(spoken.inputs)
        if len(spoken.rows):
            source.feed(Rows(spoken.rows), final=True)
        source.feed(Codes(spoken.answer[:, None]), final=True)
        prompt = source.prompt()
    assert prompt.prompt_len == len(prompt.rows)
    ours, theirs = prompt.rows.reshape(-1)[::ROW_STRIDE].numpy(), golden(scenario, "talker_rows")
    np.testing.assert_allclose(ours, theirs, rtol=0, atol=4e-6 * rms(theirs))


@pytest.mark.parametrize("at_once", [1, 4])
def test_an_answer_may_arrive_token_by_token(
    checkpoints: Qwen3OmniCheckpoints, at_once: int
) -> None:
    checkpoint = checkpoints.get(1)
    spoken = checkpoint.spoken(scenario_named("sound"))
    codes = checkpoint.speak({"request": spoken}, at_once=at_once)["request"]
    np.testing.assert_array_equal(codes, golden(scenario_named("sound"), "codes"))


def test_a_request_says_the_same_in_company_and_from_recorded_completion(
    checkpoints: Qwen3OmniCheckpoints,
) -> None:
    checkpoint = checkpoints.get(1)
    mine = [scenario for scenario in SPOKEN if scenario.seed == 1][:8]
    requests = {
        scenario.name: shortened(checkpoint.spoken(scenario), 6 + number)
        for number, scenario in enumerate(mine)
    }
    together = checkpoint.speak(requests)
    for name, spoken in requests.items():
        alone = checkpoint.speak({name: spoken})[name]
        np.testing.assert_array_equal(together[name], alone, err_msg=name)
    assert len({codes.tobytes() for codes in together.values()}) == len(mine)
    with recorded_frames(checkpoint.talker):
        recorded = checkpoint.speak(requests)
    for name, codes in together.items():
        np.testing.assert_array_equal(recorded[name], codes, err_msg=name)
