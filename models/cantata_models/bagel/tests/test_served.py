"""Through stage processes: thoughts, conversations, and the same pictures as in this one."""

from __future__ import annotations

from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio

from cantata.config import load_deployment
from cantata.contract.data.chat import Thought
from cantata.contract.data.chunks import Image
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent
from cantata.engine.image_model import PipelineImageModel
from cantata.engine.plan import ServicePlan
from cantata.engine.service import create_service
from cantata.plugins import locate
from cantata_models.bagel.builder import PictureBuilder
from cantata_models.bagel.plugin import PLUGIN
from cantata_models.bagel.random_checkpoint.write import write_checkpoint
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.scenarios import SEED, SIZES, scenario_named
from threads import threads


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(checkpoint: Path) -> AsyncIterator[PipelineImageModel]:
    located = locate(f"{PLUGIN.name}={checkpoint}")
    # Small pictures: those of published sizes take a minute.
    plugin = replace(PLUGIN, load_image_builder=lambda folder: PictureBuilder(folder, SIZES))
    located = replace(located, plugin=plugin)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.image_models[PLUGIN.name]
    await service.stop()


async def events_of(model: PipelineImageModel, request: ImageRequest) -> list[DrawingEvent]:
    async with model.draw(request) as drawing:
        return [event async for event in drawing]


@pytest.mark.asyncio(loop_scope="module")
async def test_the_thought_that_is_served_is_the_one_that_is_drawn(
    served: PipelineImageModel, checkpoint: Path
) -> None:
    """Through stage processes: its words before the picture, and the same picture."""
    request = scenario_named("thought").request()
    with threads(1):
        studio = Studio(checkpoint)
        drawn = studio.draw(request)
    assert drawn.thought is not None
    *before, last = await events_of(served, request)
    assert isinstance(last, Image)
    np.testing.assert_array_equal(last.pixels, drawn.pixels)
    thoughts = [event for event in before if isinstance(event, Thought)]
    reader = studio.builder.reader()
    # Between marks of begin and end.
    expected = reader.read(np.array(drawn.thought[1:-1], np.int32)) + reader.end()
    assert "".join(thought.text for thought in thoughts) == expected
    assert sum(thought.tokens for thought in thoughts) > 5


@pytest.mark.asyncio(loop_scope="module")
async def test_a_conversation_that_is_served_is_read_in_order(
    served: PipelineImageModel, checkpoint: Path
) -> None:
    """Its texts and pictures, and what the encoders make of these."""
    request = scenario_named("conversation").request()
    with threads(1):
        drawn = Studio(checkpoint).draw(request)
    *_, last = await events_of(served, request)
    assert isinstance(last, Image)
    np.testing.assert_array_equal(last.pixels, drawn.pixels)
    other = replace(request, earlier=request.earlier[::-1])
    *_, last = await events_of(served, other)
    assert isinstance(last, Image)
    assert not np.array_equal(last.pixels, drawn.pixels)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_picture_that_is_not_planned_has_no_words(served: PipelineImageModel) -> None:
    events = await events_of(served, scenario_named("square").request())
    assert isinstance(events[-1], Image)
    assert not [event for event in events if isinstance(event, Thought)]
