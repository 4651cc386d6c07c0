"""What every model that draws must do, through the whole pipeline: with the weights that it ships,
or with random ones in its own format."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel, load_plugins
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_painter.idle import assert_idle
from tiny_painter.plugin import PLUGIN as TINY_PAINTER

PLUGINS = {
    name: plugin
    for name, plugin in {**load_plugins(), TINY_PAINTER.name: TINY_PAINTER}.items()
    if plugin.load_image_builder and (plugin.embedded_checkpoint or plugin.write_random_checkpoint)
}
PROMPTS = ("a red heart", "a house", "", "two cats and a dog under a very old tree")

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.parametrize("model", sorted(PLUGINS), indirect=True, scope="module"),
]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> AsyncIterator[PipelineImageModel]:
    plugin = PLUGINS[request.param]
    checkpoint = plugin.embedded_checkpoint
    if checkpoint is None:
        assert plugin.write_random_checkpoint is not None
        checkpoint = tmp_path_factory.mktemp("checkpoint")
        plugin.write_random_checkpoint(checkpoint)
    located = LocatedModel(plugin, checkpoint)
    deployment = load_deployment(plugin.deployment, plugin.pipeline).only(
        {stage.name for stage in located.pipeline.stages}
    )
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.image_models[plugin.name]
    await service.stop()


def asked(model: PipelineImageModel, number: int) -> ImageRequest:
    """Another prompt, size, seed, guidance and number of steps for each number; small."""
    limits = model.limits
    side = -(-limits.min_side // limits.multiple) * limits.multiple
    return ImageRequest(
        PROMPTS[number % len(PROMPTS)],
        tuple(np.full((40, 56, 3), 60 * n, np.uint8) for n in range(limits.min_references)),
        side + limits.multiple * (number % 3),
        side + limits.multiple * (number % 2),
        seed=number,
        steps=min(2 + number % 3, limits.max_steps),
        guidance=min((1.0, 3.0)[number % 2], limits.max_guidance),
    )


async def drawn(model: PipelineImageModel, request: ImageRequest) -> NDArray[np.uint8]:
    async with model.run(request) as drawing:
        events = [event async for event in drawing]
    done = [event.step for event in events if isinstance(event, Progress)]
    assert done == sorted(done)
    assert all(step <= drawing.steps for step in done)
    last = events[-1]
    assert isinstance(last, Image)
    assert last.pixels.shape == (request.height, request.width, 3)
    assert last.pixels.dtype == np.uint8
    return last.pixels


@pytest.mark.thorough(every=2)
async def test_a_picture_is_the_same_alone_in_company_and_once_more(
    model: PipelineImageModel,
) -> None:
    requests = [asked(model, number) for number in range(5)]
    alone = [await drawn(model, request) for request in requests]
    together = await asyncio.gather(
        *(drawn(model, request) for request in [*requests, requests[0]])
    )
    for expected, found in zip([*alone, alone[0]], together, strict=True):
        np.testing.assert_array_equal(found, expected)
    await assert_idle(model)


async def test_seed_and_prompt_make_the_picture(model: PipelineImageModel) -> None:
    first = asked(model, 1)
    others = [replace(first, seed=2), replace(first, prompt="a blue boat")]
    pictures = {(await drawn(model, request)).tobytes() for request in (first, first, *others)}
    assert len(pictures) == 3


async def test_previews_are_small_pictures_of_the_same_shape(model: PipelineImageModel) -> None:
    request = replace(asked(model, 0), steps=min(3, model.limits.max_steps), previews=1)
    async with model.run(request) as drawing:
        previews = [e async for e in drawing if isinstance(e, Progress) and e.pixels.size]
    assert previews
    height, width, channels = previews[0].pixels.shape
    assert channels == 3
    assert drawing.width / width == drawing.height / height


@pytest.mark.parametrize("after", [0, 1])
async def test_a_cancelled_picture_leaves_nothing_behind(
    model: PipelineImageModel, after: int
) -> None:
    async with model.run(replace(asked(model, 2), steps=model.limits.max_steps)) as drawing:
        async for event in drawing:
            if isinstance(event, Progress) and event.step >= after:
                break
    await assert_idle(model)
