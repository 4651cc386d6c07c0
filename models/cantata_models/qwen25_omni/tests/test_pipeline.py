"""From the thinker's rows to sound, through the processes that serve it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import parse_deployment
from cantata.contract.data.chunks import Rows
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.engine.orchestrator import Orchestrator
from cantata_models.qwen25_omni.codec_stage import load_decoder
from cantata_models.qwen25_omni.inputs import Token2WavInput
from cantata_models.qwen25_omni.random_checkpoint.configs import TINY
from cantata_models.qwen25_omni.random_checkpoint.write import write_checkpoint
from cantata_models.qwen25_omni.tests.parity.scenarios import CHECKPOINT_SEED, SCENARIOS, Scenario
from cantata_models.qwen25_omni.tests.recorded_thinker import Recorded
from cantata_models.qwen25_omni.tests.talker_driver import TALKER, answer_of, goldens
from cantata_models.qwen25_omni.tests.token2wav_checks import (
    CPU,
    WAVE_TOLERANCE,
    assert_close,
    hear,
)
from threads import threads

pytestmark = [
    pytest.mark.integration,
    # vLLM's imports and start-up cause torch deprecation warnings.
    pytest.mark.filterwarnings("ignore::DeprecationWarning", "ignore::FutureWarning"),
]

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "thinker",
            StageKind.FEED_FORWARD,
            "cantata_models.qwen25_omni.tests.recorded_thinker:load",
            outputs={"rows": Rows},
        ),
        TALKER,
        StageSpec(
            "token2wav",
            StageKind.CODEC,
            "cantata_models.qwen25_omni.codec_stage:load_decoder",
        ),
    ),
    edges=(
        EdgeSpec("thinker.rows", "talker"),
        EdgeSpec("talker.codes", "token2wav"),
        EdgeSpec("token2wav.pcm", CLIENT),
    ),
)
SPOKEN = [scenario for scenario in SCENARIOS if scenario.seed == CHECKPOINT_SEED][:4]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), TINY, CHECKPOINT_SEED)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    stages = {"thinker": {}, "talker": {"slots": 4, "max_model_len": 256}, "token2wav": {}}
    deployment = parse_deployment({"stages": stages}, PIPELINE)
    orchestrator = Orchestrator(PIPELINE, checkpoint, deployment, logging.WARNING)
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


async def speak(
    pipeline: Orchestrator, scenario: Scenario, speaker: str | None = None
) -> NDArray[np.float32]:
    """What is heard of a scenario: [N]."""
    answer = answer_of(scenario)
    inputs: dict[str, StageInput] = {
        "thinker": Recorded(answer.rows),
        "talker": answer.inputs,
        "token2wav": Token2WavInput(speaker or scenario.speaker, seed=11),
    }
    request = PipelineRequest(f"{scenario.name} {speaker}", inputs)
    async with pipeline.open(request) as opened:
        heard = [chunk.payload.samples[:, 0] async for chunk in pipeline.sound(opened)]
    return np.concatenate(heard)


@pytest.mark.asyncio(loop_scope="module")
async def test_what_is_heard_is_the_decoded_golden(
    pipeline: Orchestrator, checkpoint: Path
) -> None:
    heard = await asyncio.gather(*(speak(pipeline, scenario) for scenario in SPOKEN))
    with threads(1):
        decoder = load_decoder(checkpoint, CPU)
        for scenario, samples in zip(SPOKEN, heard, strict=True):
            codes = goldens()[f"{scenario.name}/codes"].astype(np.int32)[:, None]
            stream = {"a": (codes, Token2WavInput(scenario.speaker, seed=11))}
            expected = hear(decoder, stream, len(codes))["a"]
            assert samples.shape == expected.shape
            # The stage's process may use other threads, and so add in another order.
            assert_close(samples, expected, WAVE_TOLERANCE)


@pytest.mark.asyncio(loop_scope="module")
async def test_an_unknown_speaker_fails_alone(pipeline: Orchestrator) -> None:
    first, second = SPOKEN[:2]
    failed, heard = await asyncio.gather(
        speak(pipeline, first, "Nobody"), speak(pipeline, second), return_exceptions=True
    )
    assert isinstance(failed, InvalidRequest)
    assert "no speaker 'Nobody'; valid: Chelsie, Ethan" in str(failed)
    assert isinstance(heard, np.ndarray)
    counts = [await stage.counts() for stage in pipeline.stages.values()]
    assert [what for stage in counts for what, count in stage.items() if count] == []
