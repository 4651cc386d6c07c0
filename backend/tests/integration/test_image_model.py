"""A model that draws, in processes of its own: pictures, their progress, and what goes wrong."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator

import numpy as np
import pytest
import pytest_asyncio

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import (
    CantataError,
    InvalidRequest,
    Overloaded,
    RequestFailed,
    StageDied,
)
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_painter.idle import assert_idle, until_free
from tiny_painter.plugin import PLUGIN, SLOW_S, save_tiny_painter

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineImageModel]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_painter(folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.image_models[PLUGIN.name]
    await service.stop()


async def drawn(
    model: PipelineImageModel, request: ImageRequest
) -> tuple[list[Progress], np.ndarray]:
    async with model.run(request) as drawing:
        events = [event async for event in drawing]
    *progress, last = events
    assert isinstance(last, Image)
    assert all(isinstance(event, Progress) for event in progress)
    assert last.pixels.shape == (drawing.height, drawing.width, 3)
    return [event for event in progress if isinstance(event, Progress)], last.pixels


def asked(number: int, **options: object) -> ImageRequest:
    """Another prompt, seed, size and number of steps for each number."""
    width, height = 16 + 8 * (number % 5), 16 + 16 * (number % 3)
    return ImageRequest(f"picture {number}", (), width, height, number, steps=2 + number % 4)


async def test_progress_counts_to_the_last_step_with_at_most_the_previews_that_were_asked(
    model: PipelineImageModel,
) -> None:
    request = ImageRequest("SLOW", seed=1, steps=6, previews=2)
    progress, _ = await drawn(model, request)
    steps = [event.step for event in progress]
    assert steps == sorted(set(steps))
    # The last steps of a reader that is late give way to the picture.
    assert 1 <= steps[-1] <= 6
    assert {event.steps for event in progress} == {6}
    previews = [event for event in progress if event.pixels.size]
    # A reader that is late gets them with later steps, or only the last one.
    assert 1 <= len(previews) <= 2
    assert all(event.pixels.shape == (8, 8, 3) for event in previews)


async def test_one_who_does_not_read_finds_the_latest_progress_and_the_picture(
    model: PipelineImageModel,
) -> None:
    async with model.run(ImageRequest("a", steps=30, previews=29)) as drawing:
        await until_free(model)
        events = [event async for event in drawing]
    assert isinstance(events[-1], Image)
    assert len(events) <= 2


async def test_references_change_the_picture(model: PipelineImageModel) -> None:
    plain = ImageRequest("a", seed=3)
    red, blue = np.zeros((2, 8, 8, 3), np.uint8)
    red[..., 0] = blue[..., 2] = 255
    pictures = [
        (await drawn(model, ImageRequest("a", given, seed=3)))[1].tobytes()
        for given in ((red,), (blue,), (red, blue))
    ]
    assert len({(await drawn(model, plain))[1].tobytes(), *pictures}) == 4


@pytest.mark.parametrize(
    ("prompt", "message"),
    [
        ("UNREADABLE", "the input could not be read"),
        ("UNWILLING", "this cannot be drawn"),
        ("CRASH", "the picture could not be drawn"),
        ("REFUSED", "the second step failed"),
        ("NAN", "not finite"),
    ],
)
async def test_a_fault_of_one_picture_leaves_the_others_as_they_are(
    model: PipelineImageModel, prompt: str, message: str
) -> None:
    requests = [asked(number) for number in range(3)]
    alone = [(await drawn(model, request))[1] for request in requests]
    *pictures, fault = await asyncio.gather(
        *(drawn(model, request) for request in requests),
        drawn(model, ImageRequest(prompt, steps=5)),
        return_exceptions=True,
    )
    assert isinstance(fault, RequestFailed)
    assert message in fault.message
    for expected, found in zip(alone, pictures, strict=True):
        assert not isinstance(found, BaseException)
        np.testing.assert_array_equal(found[1], expected)
    await assert_idle(model)


async def test_an_invalid_prompt_is_rejected_before_any_stage_hears_of_it(
    model: PipelineImageModel,
) -> None:
    with pytest.raises(InvalidRequest, match="no colour") as caught:
        await drawn(model, ImageRequest("UNSPEAKABLE"))
    assert caught.value.param == "prompt"
    await assert_idle(model)


@pytest.mark.parametrize("after", range(4))
async def test_a_cancelled_picture_frees_its_slot_at_any_step(
    model: PipelineImageModel, after: int
) -> None:
    async with model.run(ImageRequest("SLOW", steps=100)) as drawing:
        async for event in drawing:
            if isinstance(event, Progress) and event.step >= after:
                break
    await assert_idle(model)


async def test_a_short_picture_does_not_wait_for_a_long_one(model: PipelineImageModel) -> None:
    """A long one is at work for 5 s; the short one needs a hundredth of that."""
    async with model.run(ImageRequest("SLOW", seed=1, steps=100)) as long:
        async for event in long:
            if isinstance(event, Progress) and event.step:
                break
        async with asyncio.timeout(100 * SLOW_S / 2):
            await drawn(model, ImageRequest("short", steps=4))


async def test_what_would_be_done_too_late_is_rejected_with_the_time_that_it_takes(
    model: PipelineImageModel,
) -> None:
    slow = ImageRequest("SLOW", steps=20)
    await drawn(model, slow)
    soon = ImageRequest("a", width=256, height=256, steps=200, deadline_s=time.monotonic() + 0.01)
    with pytest.raises(InvalidRequest, match="even alone") as caught:
        await drawn(model, soon)
    assert caught.value.param == "deadline_s"


async def test_more_than_the_slots_are_rejected_and_counted(model: PipelineImageModel) -> None:
    outcomes = await asyncio.gather(
        *(drawn(model, ImageRequest("SLOW", seed=n, steps=4)) for n in range(10)),
        return_exceptions=True,
    )
    rejected = [outcome for outcome in outcomes if isinstance(outcome, Overloaded)]
    assert len(rejected) == 2
    assert all(error.retry_after_s >= 1 for error in rejected)
    assert sum(model.admission.refused.values()) >= 2
    await assert_idle(model)


async def test_a_dead_denoiser_is_an_error_and_is_started_again(
    model: PipelineImageModel,
) -> None:
    before = (await drawn(model, asked(1)))[1]
    with pytest.raises(StageDied):
        await drawn(model, ImageRequest("FATAL", steps=5))
    async with asyncio.timeout(60):
        while True:
            try:
                after = (await drawn(model, asked(1)))[1]
                break
            except CantataError:
                await asyncio.sleep(0.2)
    np.testing.assert_array_equal(after, before)
    await assert_idle(model)
