"""Served, an edit is what the reference makes of it, alone and beside others."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.config.plugins import locate
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata_models.qwen_image.tests.checks import check_pixels, goldens
from cantata_models.qwen_image.tests.parity.scenarios import SERVED, checkpoint_for, kept_pixels
from served import started

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineImageModel]:
    folder: Path = checkpoint_for(SERVED, tmp_path_factory.mktemp("served"))
    located = locate(str(folder))
    deployment = load_deployment(located.plugin.deployment, located.pipeline)
    async with started(ServicePlan(located, located.pipeline, deployment)) as service:
        yield service.image_models["qwen-image"]


async def drawn(model: PipelineImageModel, request: ImageRequest) -> NDArray[np.uint8]:
    async with model.run(request) as drawing:
        events = [event async for event in drawing]
    last = events[-1]
    assert isinstance(last, Image)
    return last.pixels


async def test_an_edit_is_the_references_in_company_too(model: PipelineImageModel) -> None:
    (request,) = SERVED.requests()
    other = replace(request, seed=5, width=32, height=32, guidance=1.0)
    alone = await drawn(model, request)
    beside, _ = await asyncio.gather(drawn(model, request), drawn(model, other))
    check_pixels(kept_pixels(alone[None]), goldens()["served/pixels"])
    np.testing.assert_array_equal(beside, alone)


async def test_an_edit_without_a_picture_is_refused(model: PipelineImageModel) -> None:
    (request,) = SERVED.requests()
    with pytest.raises(InvalidRequest, match="this model takes 1 to 3") as raised:
        await drawn(model, replace(request, references=()))
    assert raised.value.param == "image"
