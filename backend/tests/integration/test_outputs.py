"""A pipeline with two outputs: each is a stream of its own, and neither waits for the other."""

from __future__ import annotations

import logging
from collections.abc import AsyncIterator, Iterable
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import parse_deployment
from cantata.contract.data.chunks import Chunk, Codes, Payload, Pcm
from cantata.contract.data.request import PipelineRequest
from cantata.contract.model.pipeline import CLIENT, EdgeSpec
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.output_stream import OpenRequest
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.decoder import decode_all
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import PIPELINE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TOLD, HEARD = EdgeSpec("talker.codes", CLIENT), EdgeSpec("decoder.pcm", CLIENT)
BOTH = replace(PIPELINE, edges=(*PIPELINE.edges, TOLD))
FRAMES = 100
CREDIT_S = 2.0
"""A quarter of what these last."""


@pytest_asyncio.fixture(params=[True, False], ids=["async chunks", "whole"], loop_scope="module")
async def pipeline(request: pytest.FixtureRequest, tmp_path: Path) -> AsyncIterator[Orchestrator]:
    save_tiny_checkpoint(tmp_path)
    stages = {"talker": {"slots": 2, "max_model_len": 128}, "decoder": {"credit_s": CREDIT_S}}
    settings = {"stages": stages, "async_chunk": request.param}
    orchestrator = Orchestrator(BOTH, tmp_path, parse_deployment(settings, BOTH), logging.WARNING)
    await orchestrator.start()
    yield orchestrator
    await orchestrator.stop(deadline_s=5)


def request(name: str) -> PipelineRequest:
    payload = TinyInput(text=[7, 8, 9], max_frames=FRAMES, min_frames=FRAMES)
    return PipelineRequest(name, {"talker": payload})


async def taken(
    pipeline: Orchestrator, opened: OpenRequest, edge: EdgeSpec
) -> list[Chunk[Payload]]:
    return [chunk async for chunk in pipeline.output(opened, edge)]


def join_codes(chunks: Iterable[Chunk[Payload]]) -> NDArray[np.int32]:
    return np.concatenate([c.payload.values for c in chunks if isinstance(c.payload, Codes)])


def collect_sound(chunks: Iterable[Chunk[Payload]]) -> NDArray[np.float32]:
    return np.concatenate([c.payload.samples for c in chunks if isinstance(c.payload, Pcm)])


@pytest.mark.thorough(every=2)
async def test_both_are_whole_and_neither_waits_for_the_other(pipeline: Orchestrator) -> None:
    async with pipeline.open(request("codes first")) as opened:
        codes = join_codes(await taken(pipeline, opened, TOLD))  # with all sound unread
        sound = await taken(pipeline, opened, HEARD)
    assert len(codes) == FRAMES
    assert [chunk.index for chunk in sound] == list(range(len(sound)))
    np.testing.assert_array_equal(collect_sound(sound), decode_all(codes))

    async with pipeline.open(request("sound first")) as opened:
        sound = await taken(pipeline, opened, HEARD)  # with all codes unread
        np.testing.assert_array_equal(collect_sound(sound), decode_all(codes))
        told = await taken(pipeline, opened, TOLD)
    np.testing.assert_array_equal(join_codes(told), codes)
    for chunks, steps in ((told, ["talker"]), (sound, ["talker", "decoder"])):
        assert [milestone.step for milestone in chunks[0].milestones] == steps
    assert await held(pipeline) == []


@pytest.mark.thorough(every=2)
async def test_a_request_of_which_one_output_was_read_is_freed_everywhere(
    pipeline: Orchestrator,
) -> None:
    for edge in (TOLD, HEARD):
        async with pipeline.open(request(f"only {edge.source}")) as opened:
            assert await taken(pipeline, opened, edge)
        async with pipeline.open(request(f"one chunk of {edge.source}")) as opened:
            async for _ in pipeline.output(opened, edge):
                break
        assert await held(pipeline) == []


async def held(pipeline: Orchestrator) -> list[str]:
    counts = [await stage.get_counts() for stage in pipeline.stages.values()]
    return [what for stage in counts for what, count in stage.items() if count]
