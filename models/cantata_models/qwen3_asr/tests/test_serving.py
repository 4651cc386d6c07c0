"""Served, a window of sound is written down as the reference writes it."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from cantata.config import load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.transcripts import Transcript, TranscriptionRequest
from cantata.contract.transcription_service import TranscriptionModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from cantata_models.qwen3_asr.random_checkpoint.write import write_checkpoint
from cantata_models.qwen3_asr.tests.parity.scenarios import SCENARIOS, Scenario
from cantata_models.qwen3_asr.tests.thinker_driver import golden

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SEED = 1
ENDED = [one for one in SCENARIOS if one.seed == SEED]
"""Whose answers the reference did not cut."""


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TranscriptionModel]:
    located = locate(str(write_checkpoint(tmp_path_factory.mktemp("asr"), SEED)))
    whole = load_deployment(located.plugin.deployment, located.pipeline).with_dtype("float32")
    small = {"slots": 4, "max_model_len": 2048, "kv_positions": 4096}
    stages = {
        name: stage.model_copy(update=small if name == "thinker" else {"slots": 4})
        for name, stage in whole.stages.items()
    }
    deployment = whole.model_copy(update={"stages": stages})
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.transcription_models["qwen3-asr"]
    await service.stop()


async def recognized(model: TranscriptionModel, scenario: Scenario, pieces: int = 1) -> Transcript:
    request = TranscriptionRequest(scenario.language, scenario.prompt)
    async with model.recognize(request) as window:
        for piece in np.array_split(scenario.samples, pieces):
            await window.feed(piece)
        return await window.finish()


@pytest.mark.parametrize("scenario", ENDED, ids=lambda scenario: scenario.name)
async def test_a_transcript_is_the_reference_s(
    model: TranscriptionModel, scenario: Scenario
) -> None:
    transcript = await recognized(model, scenario, pieces=3)
    assert transcript.text == str(golden(scenario, "text"))
    assert transcript.language == (scenario.language or "")
    assert transcript.seconds == len(scenario.samples) / 16_000


async def test_together_each_is_what_it_is_alone(model: TranscriptionModel) -> None:
    together = await asyncio.gather(*(recognized(model, scenario) for scenario in ENDED[:4]))
    assert [one.text for one in together] == [str(golden(one, "text")) for one in ENDED[:4]]


async def test_a_window_without_sound_ends(model: TranscriptionModel) -> None:
    transcript = await recognized(model, Scenario("none", np.zeros(0, np.float32)))
    assert transcript.seconds == 0


async def test_a_window_that_is_left_is_freed(model: TranscriptionModel) -> None:
    async with model.recognize(TranscriptionRequest()) as window:
        await window.feed(ENDED[0].samples)
    assert model.admission.running == 0
    assert model.admission.slots_in_use == 0


async def test_an_unknown_language_is_refused(model: TranscriptionModel) -> None:
    with pytest.raises(InvalidRequest, match="klingon"):
        await recognized(model, Scenario("unknown", ENDED[0].samples, "klingon"))
    assert model.admission.slots_in_use == 0


async def test_the_model_says_what_it_does(model: TranscriptionModel) -> None:
    assert not model.has_partials
    assert not model.has_timestamps
    assert not model.translates
    assert model.languages[:2] == ("zh", "en")
