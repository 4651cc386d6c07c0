"""A server of several models: one that speaks at once, one that draws and starts later."""

from __future__ import annotations

import asyncio
import time
from collections.abc import AsyncIterator
from dataclasses import replace
from pathlib import Path

import pytest
import pytest_asyncio

from cantata.config import load_deployment, parse_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import ConfigError, ModelNotFound, StageDied, StartFailed
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.data.request import SpeechRequest
from cantata.contract.model.pipeline import StageKind, StageSpec
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import PipelineService, create_service
from tiny_painter.plugin import PLUGIN as PAINTER
from tiny_painter.plugin import save_tiny_painter
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.plugin import PLUGIN as TALKER

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]


def plans(folder: Path) -> tuple[ServicePlan, ServicePlan]:
    talking, painting = folder / "talker", folder / "painter"
    talking.mkdir()
    painting.mkdir()
    save_tiny_checkpoint(talking)
    save_tiny_painter(painting)
    raw = {"stages": {"talker": {"slots": 2, "max_model_len": 128}, "decoder": {"slots": 2}}}
    talker = LocatedModel(TALKER, talking)
    painter = LocatedModel(PAINTER, painting)
    return (
        ServicePlan(talker, talker.pipeline, parse_deployment(raw, talker.pipeline)),
        ServicePlan(
            painter, painter.pipeline, load_deployment(PAINTER.deployment, painter.pipeline)
        ),
    )


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineService]:
    talker, painter = plans(tmp_path_factory.mktemp("checkpoints"))
    service = create_service(talker, later=[painter])
    await service.start()
    yield service
    await service.stop()


async def drawn(service: PipelineService, request: ImageRequest) -> Image:
    async with service.get_image_model(None).run(request) as drawing:
        *_, last = [event async for event in drawing]
    assert isinstance(last, Image)
    return last


async def test_a_picture_waits_for_the_model_that_starts_later(service: PipelineService) -> None:
    assert service.ready
    assert {report.model for report in await service.collect_stage_reports()} == {TALKER.name}
    assert not service.get_image_model(None).admission.places
    soon = ImageRequest("a", seed=1, deadline_s=time.monotonic())
    with pytest.raises(StageDied, match="still loading"):
        await drawn(service, soon)
    async with asyncio.timeout(60):
        first = await drawn(service, ImageRequest("a", seed=1))
    second = await drawn(service, ImageRequest("a", seed=1))
    assert first.pixels.tobytes() == second.pixels.tobytes()
    reports = await service.collect_stage_reports()
    assert {report.model for report in reports} == {TALKER.name, PAINTER.name}
    assert all(report.alive for report in reports)


async def test_it_speaks_and_draws_at_the_same_time(service: PipelineService) -> None:
    async def speak() -> int:
        model = service.get_model(TALKER.name)
        request = SpeechRequest("hello there", model.voices[0].id)
        async with model.run(request) as utterance:
            return sum([len(chunk.samples) async for chunk in utterance])

    samples, image = await asyncio.gather(speak(), drawn(service, ImageRequest("SLOW")))
    assert samples
    assert image.pixels.size


@pytest.mark.parametrize("name", ["dall-e-3", "gpt-image-1", PAINTER.name, None])
async def test_names_that_clients_send_mean_the_first_model_that_draws(
    service: PipelineService, name: str | None
) -> None:
    assert service.get_image_model(name).name == PAINTER.name


async def test_a_model_that_speaks_does_not_draw(service: PipelineService) -> None:
    with pytest.raises(ModelNotFound, match=f"that draws; served: {PAINTER.name}"):
        service.get_image_model(TALKER.name)
    with pytest.raises(ModelNotFound):
        service.get_model(PAINTER.name)


async def test_a_server_has_each_model_once(tmp_path: Path) -> None:
    talker, _ = plans(tmp_path)
    with pytest.raises(ConfigError, match="once"):
        create_service(talker, talker)


async def test_a_model_that_cannot_start_later_says_so(tmp_path: Path) -> None:
    talker, painter = plans(tmp_path)
    broken = StageSpec(
        "denoiser",
        StageKind.DIFFUSION,
        "tiny_painter.stages:not_there",
        outputs={"progress": Progress},
    )
    stages = tuple(broken if s.name == broken.name else s for s in painter.pipeline.stages)
    service = create_service(
        talker, later=[replace(painter, pipeline=replace(painter.pipeline, stages=stages))]
    )
    await service.start()
    try:
        async with asyncio.timeout(60):
            with pytest.raises(StartFailed, match=r"stage 'denoiser' cannot start: .*not_there"):
                await drawn(service, ImageRequest("a"))
        assert service.ready
    finally:
        await service.stop()
