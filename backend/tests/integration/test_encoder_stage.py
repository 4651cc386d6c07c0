"""A pipeline with an encoder: what it makes reaches the talker, and its faults nobody else."""

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
from cantata.contract.data.errors import InvalidAudio, StageDied
from cantata.contract.data.request import PipelineRequest
from cantata.contract.process.messages import ReuseReport
from cantata.pipeline.orchestrator import Orchestrator
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.decoder import SAMPLES_PER_FRAME
from tiny_talker.encoder import FATAL, LONG, SHORT, STUCK
from tiny_talker.inputs import TinyInput, TinySound
from tiny_talker.plugin import ENCODED

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

FRAMES = 40
SAMPLES = 6


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[Orchestrator]:
    folder: Path = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    stages = {
        "encoder": {"slots": 16},
        "talker": {"slots": 16, "max_model_len": 128},
        "decoder": {"slots": 16, "credit_s": 1.0},
    }
    deployment = parse_deployment({"stages": stages}, ENCODED)
    orchestrator = Orchestrator(ENCODED, folder, deployment, logging.CRITICAL)
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


def request(name: str, first: float | None, seed: int = 0) -> PipelineRequest:
    """One that follows a recording with this first sample, or none."""
    talker = TinyInput([7, 8], FRAMES, min_frames=FRAMES, follows=first is not None)
    if first is None:
        return PipelineRequest(name, {"talker": talker})
    samples = np.random.default_rng(seed).random(SAMPLES, np.float32)
    samples[0] = first
    return PipelineRequest(name, {"encoder": TinySound(samples), "talker": talker})


async def heard(pipeline: Orchestrator, asked: PipelineRequest) -> NDArray[np.float32]:
    async with pipeline.open(asked) as opened:
        return np.concatenate([chunk.payload.samples async for chunk in pipeline.sound(opened)])


async def reuse(pipeline: Orchestrator) -> ReuseReport:
    report = (await pipeline.stages["encoder"].ask()).reuse
    assert report is not None
    return report


async def held(pipeline: Orchestrator) -> list[str]:
    counts = [await stage.get_counts() for stage in pipeline.stages.values()]
    return [what for stage in counts for what, count in stage.items() if count]


async def test_the_recording_is_heard_and_a_request_without_one_passes(
    pipeline: Orchestrator,
) -> None:
    plain = await heard(pipeline, request("plain", None))
    one, same, other = [await heard(pipeline, request(f"r{s}", s)) for s in (1.0, 1.0, 2.0)]
    assert len(plain) == len(one) == len(other)
    np.testing.assert_array_equal(one, same)
    assert (one != plain).any()
    assert (one != other).any()
    assert await held(pipeline) == []


async def test_sixteen_equal_cold_requests_are_encoded_once(pipeline: Orchestrator) -> None:
    before = await reuse(pipeline)
    requests = [request(f"cold {number}", 3.0) for number in range(16)]
    sounds = await asyncio.gather(*(heard(pipeline, asked) for asked in requests))
    after = await reuse(pipeline)
    assert after.encodes - before.encodes == 1
    assert after.hits + after.joined - before.hits - before.joined == 15
    for sound in sounds[1:]:
        np.testing.assert_array_equal(sound, sounds[0])
    assert await held(pipeline) == []


async def test_a_refused_recording_fails_its_request_and_holds_nothing(
    pipeline: Orchestrator,
) -> None:
    expected = await heard(pipeline, request("before", 1.0))
    good, *bad = await asyncio.gather(
        *(heard(pipeline, request(f"r{n}", first)) for n, first in enumerate((1.0, SHORT, SHORT))),
        return_exceptions=True,
    )
    np.testing.assert_array_equal(good, expected)
    assert [type(error) for error in bad] == [InvalidAudio, InvalidAudio]
    assert await held(pipeline) == []


async def test_who_leaves_while_it_is_encoded_leaves_nothing_behind(pipeline: Orchestrator) -> None:
    async with pipeline.open(request("stays", LONG)) as stays:
        async with pipeline.open(request("leaves", LONG)):
            pass
        sound = [chunk.payload.samples async for chunk in pipeline.sound(stays)]
    assert len(np.concatenate(sound)) == FRAMES * SAMPLES_PER_FRAME
    assert await held(pipeline) == []


@pytest.mark.parametrize("fault", [FATAL, STUCK])
async def test_an_encoder_that_dies_or_hangs_takes_only_those_who_wait_for_it(
    pipeline: Orchestrator, fault: float
) -> None:
    expected = await heard(pipeline, request("alone", 1.0))
    async with pipeline.open(request("speaks", 1.0)) as opened:
        chunks = pipeline.sound(opened)
        taken = [(await anext(chunks)).payload.samples]
        with pytest.raises(StageDied):
            await heard(pipeline, request("fatal", fault))
        await pipeline.wait_until_ready(20)
        taken += [chunk.payload.samples async for chunk in chunks]
    np.testing.assert_array_equal(np.concatenate(taken), expected)
    np.testing.assert_array_equal(await heard(pipeline, request("after", 1.0)), expected)
    assert await held(pipeline) == []
