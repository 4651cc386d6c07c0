"""A model that answers and draws: one pipeline, one process for both, its slots shared."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.chat_service import AnswerDelta, FinishReason, TextEnd
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import Overloaded, Quarantined, RequestFailed, StageDied
from cantata.contract.data.pictures import ImageRequest
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import PipelineService, create_service
from tiny_painter.idle import assert_idle, until_free
from tiny_painter.plugin import save_tiny_painter
from tiny_painter.scribe import MAX_TOKENS, PLUGIN

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 8
PATIENCE_S = 3600.0
SAID = ("a", "What was said, said again.", "no")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineService]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_painter(folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    # On a busy machine, what is slow here would be rejected because of the wait.
    denoiser = deployment.stages["denoiser"].model_copy(update={"max_wait_s": PATIENCE_S})
    stages = {**deployment.stages, "denoiser": denoiser}
    patient = deployment.model_copy(update={"stages": stages})
    service = create_service(ServicePlan(located, located.pipeline, patient))
    await service.start()
    yield service
    await service.stop()


@pytest.fixture(scope="module")
def scribe(service: PipelineService) -> PipelineChatModel:
    return service.chat_models[PLUGIN.name]


@pytest.fixture(scope="module")
def painter(service: PipelineService) -> PipelineImageModel:
    return service.image_models[PLUGIN.name]


def saying(text: str, most: int | None = None) -> ChatRequest:
    return ChatRequest((Message(Role.USER, (TextPart(text),)),), max_tokens=most)


def asked(number: int) -> ImageRequest:
    return ImageRequest(f"picture {number}", (), 16 + 8 * number, 16, number, steps=3 + number)


async def answered(model: PipelineChatModel, request: ChatRequest) -> tuple[str, FinishReason]:
    text, reasons = "", []
    async with model.run(request) as answer:
        async for event in answer:
            if isinstance(event, AnswerDelta):
                assert event.tokens == len(event.text)
                text += event.text
            elif isinstance(event, TextEnd):
                reasons.append(event.reason)
    (reason,) = reasons
    return text, reason


async def drawn(model: PipelineImageModel, request: ImageRequest) -> NDArray[np.uint8]:
    async with model.run(request) as drawing:
        *_, last = [event async for event in drawing]
    assert isinstance(last, Image)
    return last.pixels


async def test_it_answers_while_it_draws(
    service: PipelineService, scribe: PipelineChatModel, painter: PipelineImageModel
) -> None:
    alone = [await drawn(painter, asked(number)) for number in range(3)]
    pictures = asyncio.gather(*(drawn(painter, asked(number)) for number in range(3)))
    said = await asyncio.gather(*(answered(scribe, saying(text)) for text in SAID))
    assert said == [(text, FinishReason.STOP) for text in SAID]
    for expected, found in zip(alone, await pictures, strict=True):
        np.testing.assert_array_equal(found, expected)
    assert await answered(scribe, saying(SAID[1], 4)) == ("What", FinishReason.LENGTH)
    await assert_idle(painter)
    names = [report.stage for report in await service.collect_stage_reports()]
    assert names == ["text", "looking", "denoiser", "decoder"]
    assert list(service.chat_models) == list(service.image_models) == [PLUGIN.name]
    assert not service.models


async def test_an_answer_that_nobody_waits_for_yields(scribe: PipelineChatModel) -> None:
    """It leaves half of the slots to others."""
    later = replace(saying(SAID[0]), batch=True)
    before = scribe.admission.admitted["batch"]
    assert await answered(scribe, later) == (SAID[0], FinishReason.STOP)
    assert scribe.admission.admitted["batch"] == before + 1
    async with AsyncExitStack() as held:
        for _ in range(SLOTS // 2):
            await held.enter_async_context(scribe.run(saying("SLOW" * 40)))
        with pytest.raises(Overloaded):
            await answered(scribe, later)
        assert await answered(scribe, saying(SAID[1])) == (SAID[1], FinishReason.STOP)


async def test_both_kinds_share_the_slots(
    scribe: PipelineChatModel, painter: PipelineImageModel
) -> None:
    refused = sum(painter.admission.refused.values())
    async with AsyncExitStack() as held:
        for _ in range(SLOTS - 2):
            await held.enter_async_context(scribe.run(saying("SLOW" * 40)))
        for number in range(2):
            slow = ImageRequest("SLOW", (), 64, 64, number, steps=150)
            await held.enter_async_context(painter.run(slow))
        assert scribe.admission == painter.admission
        assert painter.admission.running == SLOTS
        for model in (scribe, painter):
            with pytest.raises(Overloaded):
                model.check_room()
        with pytest.raises(Overloaded, match="2 pictures are being drawn and 6 answers written"):
            await answered(scribe, saying("a"))
        with pytest.raises(Overloaded, match="2 pictures are being drawn and 6 answers written"):
            await drawn(painter, asked(0))
        assert sum(painter.admission.refused.values()) == refused + 4
    await assert_idle(painter)
    assert await answered(scribe, saying("a")) == ("a", FinishReason.STOP)


async def test_an_answer_goes_on_beside_a_long_picture(
    scribe: PipelineChatModel, painter: PipelineImageModel
) -> None:
    """It does not wait for the end of one that has begun."""
    slow = ImageRequest("SLOW", (), 64, 64, steps=150)
    async with painter.run(slow) as drawing:
        assert (await anext(aiter(drawing.events))) is not None
        assert await answered(scribe, saying(SAID[1])) == (SAID[1], FinishReason.STOP)
        assert painter.admission.running == 1
    await assert_idle(painter)


@pytest.mark.parametrize("letters", [0, 1, 5])
async def test_an_answer_that_is_left_leaves_nothing_behind(
    scribe: PipelineChatModel, painter: PipelineImageModel, letters: int
) -> None:
    async with scribe.run(saying("SLOW " * MAX_TOKENS)) as answer:
        events = aiter(answer.events)
        for _ in range(letters):
            await anext(events)
    await assert_idle(painter)


async def test_a_fault_of_an_answer_is_its_own(
    scribe: PipelineChatModel, painter: PipelineImageModel
) -> None:
    alone = await drawn(painter, asked(1))
    drawing = asyncio.create_task(drawn(painter, asked(1)))
    with pytest.raises(RequestFailed, match="the text could not be written"):
        await answered(scribe, saying("CRASH"))
    np.testing.assert_array_equal(await drawing, alone)
    await assert_idle(painter)


async def test_one_that_ends_the_process_twice_is_quarantined(
    scribe: PipelineChatModel, painter: PipelineImageModel
) -> None:
    """Whichever kind it is, the stage starts again for both."""
    for error in (StageDied, Quarantined, Quarantined):
        with pytest.raises(error):
            await answered(scribe, saying("FATAL"))
        await scribe.orchestrator.wait_until_ready(30)
    await drawn(painter, asked(0))
    await until_free(painter)
    assert scribe.admission.quarantined == painter.admission.quarantined == 1


async def test_so_is_one_whose_process_takes_a_second_to_end(scribe: PipelineChatModel) -> None:
    before = scribe.admission.quarantined
    for error in (StageDied, Quarantined):
        with pytest.raises(error):
            await answered(scribe, saying("LINGER"))
        await scribe.orchestrator.wait_until_ready(30)
    assert scribe.admission.quarantined == before + 1
