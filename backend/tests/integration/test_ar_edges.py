"""Rows that another stage makes: a talker that repeats what the one before it is saying."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import ArDeployment, parse_deployment
from cantata.contract.data.chunks import Codes, Pcm
from cantata.contract.data.errors import RequestFailed
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.contract.process.stage import Stage
from cantata.pipeline.orchestrator import Orchestrator
from cantata.stages.ar import build_stage
from stage_chunks import codes_chunk, pcm_chunk
from tiny_talker.checkpoint import CODEBOOK_SIZE, NUM_CODEBOOKS, save_tiny_checkpoint
from tiny_talker.decoder import decode_all
from tiny_talker.driving import Listener
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import HEARD_FIRST, TWO_TALKERS

pytestmark = pytest.mark.vllm

FRAMES = 30
SAID, HEARD = EdgeSpec("talker.codes", CLIENT), EdgeSpec("decoder.pcm", CLIENT)
Frames = NDArray[np.int32]


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def repeater(checkpoint: Path) -> Iterator[Stage]:
    deployment = ArDeployment(slots=2, max_model_len=128)
    stage = build_stage(TWO_TALKERS.stage("repeater"), checkpoint, deployment)
    yield stage
    stage.close()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    talker = {"slots": 4, "max_model_len": 128}
    stages = {"talker": talker, "repeater": talker, "decoder": {"slots": 4}}
    deployment = parse_deployment({"stages": stages}, TWO_TALKERS)
    orchestrator = Orchestrator(TWO_TALKERS, checkpoint, deployment, logging.WARNING)
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


def said(count: int, seed: int = 0) -> Frames:
    shape = (count, NUM_CODEBOOKS)
    return np.random.default_rng(seed).integers(0, CODEBOOK_SIZE, shape, dtype=np.int32)


def repeated(stage: Stage, *parts: Frames) -> Frames:
    """What the stage makes of frames that come in these parts, each as far as it goes."""
    listener = Listener()
    stage.add("r", TinyInput(max_frames=FRAMES), batch=False)
    for index, part in enumerate(parts):
        stage.receive([codes_chunk("r", index, part, index == len(parts) - 1)])
        while stage.has_work():
            listener.step(stage)
    assert set(stage.get_counts().values()) == {0}
    return listener.frames("r")


def test_it_speaks_as_far_as_it_has_heard_and_no_further(repeater: Stage) -> None:
    frames, listener = said(10), Listener()
    repeater.add("r", TinyInput(max_frames=FRAMES), batch=False)
    repeater.receive([codes_chunk("r", 0, frames[: HEARD_FIRST - 1], False)])
    assert not repeater.has_work()
    assert repeater.get_counts()["slots"] == 1
    for index, heard in enumerate((HEARD_FIRST, HEARD_FIRST + 4), 1):
        before = HEARD_FIRST - 1 if index == 1 else HEARD_FIRST
        repeater.receive([codes_chunk("r", index, frames[before:heard], False)])
        while repeater.has_work():
            listener.step(repeater)
        assert len(listener.frames("r")) == heard - HEARD_FIRST + 1
    repeater.abort("r")
    assert set(repeater.get_counts().values()) == {0}


@pytest.mark.thorough(every=2)
@pytest.mark.parametrize("lengths", [(1,) * 10, (3, 7), (5, 0, 4, 1), (9, 1, 0)])
def test_how_the_rows_arrive_makes_no_difference(repeater: Stage, lengths: tuple[int, ...]) -> None:
    frames = said(10)
    whole = repeated(repeater, frames)
    assert len(whole) == FRAMES
    parts = np.split(frames, np.cumsum(lengths)[:-1])
    np.testing.assert_array_equal(repeated(repeater, *parts), whole)
    assert (repeated(repeater, said(10, seed=1)) != whole).any()


def test_a_request_that_waits_can_be_aborted_and_what_it_cannot_use_fails_it_alone(
    repeater: Stage,
) -> None:
    whole = repeated(repeater, said(10))
    repeater.add("gone", TinyInput(max_frames=FRAMES), batch=False)
    repeater.abort("gone")
    repeater.receive([codes_chunk("gone", 0, said(3), False)])
    assert set(repeater.get_counts().values()) == {0}

    no_codes = pcm_chunk("bad", 0, np.zeros((4, 1), np.float32), False)
    too_few = codes_chunk("bad", 0, said(HEARD_FIRST - 1), True)
    for chunk, message in ((no_codes, "AssertionError"), (too_few, "the input ended before")):
        repeater.add("bad", TinyInput(max_frames=FRAMES), batch=False)
        repeater.receive([chunk])
        ((request_id, error),) = repeater.step().failures
        assert request_id == "bad"
        assert isinstance(error, RequestFailed)
        assert message in str(error)
    np.testing.assert_array_equal(repeated(repeater, said(10)), whole)


def test_a_request_with_nothing_to_say_ends_without_a_frame(repeater: Stage) -> None:
    listener = Listener()
    for name in ("silent", "gone"):
        repeater.add(name, TinyInput(max_frames=FRAMES), batch=False)
        repeater.receive([codes_chunk(name, 0, said(0), True)])
    repeater.abort("gone")
    assert repeater.has_work()
    listener.step(repeater)
    assert len(listener.frames("silent")) == 0
    assert listener.finished("silent")
    assert "gone" not in listener.chunks
    assert not repeater.has_work()
    assert set(repeater.get_counts().values()) == {0}


async def speak(pipeline: Orchestrator, number: int, name: str) -> tuple[Frames, list[Pcm]]:
    """What the first talker said, and what the client heard of the second."""
    talker = TinyInput([number, number + 1, 9], FRAMES, min_frames=FRAMES)
    inputs = {"talker": talker, "repeater": TinyInput(max_frames=FRAMES)}
    async with pipeline.open(PipelineRequest(name, inputs)) as opened:
        told = [chunk.payload async for chunk in pipeline.output(opened, SAID)]
        heard = [chunk.payload async for chunk in pipeline.sound(opened)]
    return np.concatenate([part.values for part in told if isinstance(part, Codes)]), heard


@pytest.mark.thorough
@pytest.mark.asyncio(loop_scope="module")
async def test_two_talkers_speak_at_once_and_alike_alone_and_in_company(
    pipeline: Orchestrator, repeater: Stage
) -> None:
    alone = [await speak(pipeline, number, f"alone {number}") for number in range(3)]
    together = await asyncio.gather(
        *(speak(pipeline, number, f"together {number}") for number in range(3))
    )
    for (frames, heard), (same_frames, same_heard) in zip(alone, together, strict=True):
        expected = decode_all(repeated(repeater, frames))
        for parts in (heard, same_heard):
            np.testing.assert_array_equal(np.concatenate([p.samples for p in parts]), expected)
        np.testing.assert_array_equal(same_frames, frames)
    for stage in pipeline.stages.values():
        assert not any((await stage.get_counts()).values())
