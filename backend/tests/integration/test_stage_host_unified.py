"""A model that answers and draws, whose denoiser is on a stage host: both as on one machine, and
each request is over when it has left the host."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Iterator
from pathlib import Path

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.chat_service import AnswerDelta
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.chunks import Image
from cantata.contract.data.pictures import ImageRequest
from cantata.distributed.key import LinkKey
from cantata.distributed.stages.pipeline import StagesOnHosts
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import PipelineService, create_service
from host_process import KEY, HostProcess
from stage_hosts import placed, stage_host
from tiny_painter.idle import assert_idle
from tiny_painter.plugin import save_tiny_painter
from tiny_painter.scribe import PLUGIN

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SAID = ("What was said, said again.", "a", "And once more.")


@pytest.fixture(scope="module")
def host() -> Iterator[HostProcess]:
    with stage_host(7) as host:
        host.start()
        host.wait_until_ready()
        yield host


@pytest.fixture(scope="module")
def folder(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_painter(folder)
    return folder


def build_service(folder: Path, hosts: dict[str, str]) -> PipelineService:
    located = LocatedModel(PLUGIN, folder)
    deployment = placed(load_deployment(PLUGIN.deployment, located.pipeline), hosts)
    plan = ServicePlan(located, located.pipeline, deployment)
    key = LinkKey(KEY.encode())
    return create_service(plan, remote_stages=lambda placed_plan: StagesOnHosts(placed_plan, key))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(host: HostProcess, folder: Path) -> AsyncIterator[PipelineService]:
    service = build_service(folder, {"denoiser": str(host.address)})
    await service.start()
    yield service
    await service.stop()


async def said(service: PipelineService, text: str) -> str:
    request = ChatRequest((Message(Role.USER, (TextPart(text),)),))
    async with service.chat_models[PLUGIN.name].run(request) as answer:
        return "".join([event.text async for event in answer if isinstance(event, AnswerDelta)])


async def drawn(service: PipelineService, number: int) -> NDArray[np.uint8]:
    request = ImageRequest(f"picture {number}", (), 32, 16 + 8 * number, number, steps=3 + number)
    async with service.image_models[PLUGIN.name].run(request) as drawing:
        *_, last = [event async for event in drawing]
    assert isinstance(last, Image)
    return last.pixels


async def test_answers_and_pictures_are_those_of_one_machine(
    service: PipelineService, folder: Path
) -> None:
    here = build_service(folder, {})
    await here.start()
    try:
        expected = [await drawn(here, number) for number in range(3)]
    finally:
        await here.stop()
    pictures = asyncio.gather(*(drawn(service, number) for number in range(3)))
    assert tuple(await asyncio.gather(*(said(service, text) for text in SAID))) == SAID
    for alone, found in zip(expected, await pictures, strict=True):
        np.testing.assert_array_equal(found, alone)
    await assert_idle(service.image_models[PLUGIN.name])
    (denoiser,) = (one for one in await service.collect_stage_reports() if one.host)
    assert denoiser.stage == "denoiser"
