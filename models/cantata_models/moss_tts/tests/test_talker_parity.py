"""The networks and prompts of both talkers match the published code, frame by frame."""

from __future__ import annotations

import pytest

from cantata_models.moss_tts.tests.parity.scenarios import SCENARIOS, MossScenario
from cantata_models.moss_tts.tests.talker_driver import MossTalkers, check

pytestmark = pytest.mark.vllm


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_prompt_frame_and_score_is_the_published_code_s(
    talkers: MossTalkers, scenario: MossScenario
) -> None:
    check(talkers.get(scenario), scenario)
