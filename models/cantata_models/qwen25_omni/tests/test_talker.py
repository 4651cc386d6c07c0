"""The served talker speaks the reference's codes from the rows of its thinker."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np
import pytest
import torch

from cantata.contract.data.chunks import Chunk, Codes, Rows
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    ProtocolViolation,
    RequestFailed,
)
from cantata.contract.model.pipeline import CODES, ROWS
from cantata_models.qwen25_omni.random_checkpoint import TINY
from cantata_models.qwen25_omni.rows import Qwen25OmniTalkerInput
from cantata_models.qwen25_omni.tests.parity.scenarios import (
    CHECKPOINT_SEED,
    SCENARIOS,
    Qwen25OmniScenario,
)
from cantata_models.qwen25_omni.tests.talker_driver import (
    Qwen25OmniTalkers,
    collect_answer,
    differences,
    goldens,
    scenario_named,
    speak,
)
from model_engines import checkpoints_fixture

pytestmark = pytest.mark.vllm
talkers = checkpoints_fixture(Qwen25OmniTalkers, "module")


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("late", [False, True], ids=["at once", "row by row"])
@pytest.mark.parametrize("scenario", SCENARIOS, ids=lambda scenario: scenario.name)
def test_every_code_and_score_is_the_reference_s(
    talkers: Qwen25OmniTalkers, scenario: Qwen25OmniScenario, late: bool
) -> None:
    assert differences(talkers.stage(scenario.seed), scenario, late=late) == []


def test_both_codes_that_end_speech_occur() -> None:
    endings = {str(goldens()[f"{scenario.name}/ending"]) for scenario in SCENARIOS}
    assert endings == {"length", "pad", "end"}


def test_of_the_control_codes_only_those_that_end_speech_can_be_chosen(
    talkers: Qwen25OmniTalkers,
) -> None:
    stage: Any = talkers.stage(CHECKPOINT_SEED)
    scores = stage._talker.compute_logits(torch.ones(1, 64))[0]
    pad, start, end, mask = TINY.control_codes
    assert torch.isneginf(scores).nonzero()[:, 0].tolist() == [start, mask]
    assert scores[[pad, end]].isfinite().all()


def test_answers_in_company_are_spoken_as_alone(talkers: Qwen25OmniTalkers) -> None:
    stage = talkers.stage(CHECKPOINT_SEED)
    answers = {}
    for number, scenario in enumerate(s for s in SCENARIOS if s.seed == CHECKPOINT_SEED):
        sampled = {"temperature": 0.9, "top_k": 40, "top_p": 0.8} if number % 2 else {}
        answer = collect_answer(scenario, **sampled)
        sampling = replace(answer.inputs.sampling, seed=number)
        answers[scenario.name] = replace(answer, inputs=replace(answer.inputs, sampling=sampling))
    alone = {name: speak(stage, {name: answer})[name] for name, answer in answers.items()}
    for late in (False, True):
        together = speak(stage, answers, late=late)
        for name, codes in alone.items():
            np.testing.assert_array_equal(together[name], codes, err_msg=name)
    assert len({codes.tobytes() for codes in alone.values()}) == len(alone)


def rows(count: int) -> Rows:
    return Rows(np.ones((count, 128), np.float32))


def test_what_cannot_be_spoken_fails_alone(talkers: Qwen25OmniTalkers) -> None:
    stage = talkers.stage(CHECKPOINT_SEED)
    stage.add("bad", Qwen25OmniTalkerInput(4, "Chelsie", 8), batch=False)
    stage.receive([Chunk("bad", CODES, 0, Codes(np.ones((4, 1), np.int32)), False)])
    ((request_id, found),) = stage.step().failures
    assert request_id == "bad"
    with pytest.raises(ProtocolViolation, match="takes Rows, not Codes"):
        raise found
    assert differences(stage, scenario_named("one token")) == []


@pytest.mark.parametrize("count", [0, 4])
def test_an_empty_answer_is_not_spoken(talkers: Qwen25OmniTalkers, count: int) -> None:
    stage = talkers.stage(CHECKPOINT_SEED)
    stage.add("silent", Qwen25OmniTalkerInput(4, "Chelsie", 8), batch=False)
    stage.receive([Chunk("silent", ROWS, 0, rows(count), True)])
    (chunk,) = stage.step().chunks
    assert isinstance(chunk.payload, Codes)
    assert (len(chunk.payload.values), chunk.final) == (0, True)


@pytest.mark.parametrize(
    ("inputs", "error", "said"),
    [
        (
            Qwen25OmniTalkerInput(4, "ethan"),
            InvalidRequest,
            "no speaker 'ethan'; valid: Chelsie, Ethan",
        ),
        (None, RequestFailed, "has not been told how to speak"),
    ],
)
def test_who_is_not_known_is_refused(
    talkers: Qwen25OmniTalkers,
    inputs: Qwen25OmniTalkerInput | None,
    error: type[CantataError],
    said: str,
) -> None:
    with pytest.raises(error, match=said):
        talkers.stage(CHECKPOINT_SEED).add("a", inputs, batch=False)


def test_a_prompt_without_room_for_sound_is_refused(talkers: Qwen25OmniTalkers) -> None:
    stage = talkers.stage(CHECKPOINT_SEED)
    with pytest.raises(InvalidRequest, match=r"256 positions; of the 256 .* is left for sound"):
        stage.add("long", Qwen25OmniTalkerInput(254, "Chelsie"), batch=False)
