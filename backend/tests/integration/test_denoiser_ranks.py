"""A denoising stage of two ranks in a served model: it starts and ends them itself."""

from __future__ import annotations

import asyncio
import os
from collections.abc import AsyncIterator
from typing import Any

import numpy as np
import psutil
import pytest
import pytest_asyncio

from cantata.config import parse_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import CantataError
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_painter.plugin import PLUGIN, save_tiny_painter

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

REQUEST = ImageRequest("a", width=32, height=48, seed=5, steps=4)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineImageModel]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_painter(folder)
    located = LocatedModel(PLUGIN, folder)
    stages: dict[str, Any] = {stage.name: {} for stage in located.pipeline.stages}
    stages["denoiser"] = {"parallel": {"kind": "branches"}}
    deployment = parse_deployment({"stages": stages}, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    ranks = {*denoiser(service.image_models[PLUGIN.name]).children()}
    yield service.image_models[PLUGIN.name]
    ranks |= {*denoiser(service.image_models[PLUGIN.name]).children()}
    await service.stop()
    _, alive = psutil.wait_procs(ranks, timeout=60)
    assert not alive


def denoiser(model: PipelineImageModel) -> psutil.Process:
    pid = model.orchestrator.stages["denoiser"].pid
    assert pid is not None
    return psutil.Process(pid)


async def picture(model: PipelineImageModel) -> np.ndarray:
    async with model.run(REQUEST) as drawing:
        *_, last = [event async for event in drawing]
    assert isinstance(last, Image)
    return last.pixels


async def picture_in_the_end(model: PipelineImageModel) -> np.ndarray:
    async with asyncio.timeout(60):
        while True:
            try:
                return await picture(model)
            except CantataError:
                await asyncio.sleep(0.1)


@pytest.mark.parametrize("killed", ["rank", "stage"])
async def test_one_that_dies_takes_the_other_with_it_and_both_are_started_again(
    model: PipelineImageModel, killed: str
) -> None:
    before = await picture(model)
    stage = denoiser(model)
    (rank,) = stage.children()
    assert rank.cmdline()[0] == f"{stage.cmdline()[0]}:rank-1"
    (rank if killed == "rank" else stage).kill()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [rank, stage], timeout=60)
    assert not alive
    np.testing.assert_array_equal(await picture_in_the_end(model), before)
    assert denoiser(model).pid != stage.pid
    assert len(denoiser(model).children()) == 1


async def test_the_other_rank_takes_what_speech_leaves(model: PipelineImageModel) -> None:
    stage = denoiser(model)
    (rank,) = stage.children()
    assert rank.nice() > stage.nice()


async def test_no_stranger_can_reach_the_ranks(model: PipelineImageModel) -> None:
    """They listen on the loopback alone."""
    stage = denoiser(model)
    listening = [
        connection.laddr.ip
        for process in (stage, *stage.children())
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    ]
    assert listening
    assert set(listening) == {"127.0.0.1"}, (listening, os.getpid())
