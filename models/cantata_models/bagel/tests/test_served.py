"""Through stage processes, one of which draws and answers: the same pictures as in this one, the
reference's answers, thoughts and conversations."""

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
from cantata.contract.chat_service import AnswerDelta, FinishReason, TextEnd
from cantata.contract.data.chat import ChatRequest, Thought
from cantata.contract.data.chunks import Image
from cantata.contract.data.pictures import ImageRequest
from cantata.contract.image_service import DrawingEvent
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import PipelineService
from cantata_models.bagel.chat_builder import BagelChatBuilder
from cantata_models.bagel.picture_builder import BagelPictureBuilder
from cantata_models.bagel.plugin import PLUGIN
from cantata_models.bagel.random_checkpoint import write_checkpoint
from cantata_models.bagel.tests.checks import goldens
from cantata_models.bagel.tests.drawing import Studio
from cantata_models.bagel.tests.parity.conversations import CONVERSATIONS, Conversation
from cantata_models.bagel.tests.parity.scenarios import SEED, SIZES, scenario_named
from served import started
from threads import threads
from tiny_painter.idle import assert_idle

pytestmark = pytest.mark.integration


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def service(checkpoint: Path) -> AsyncIterator[PipelineService]:
    located = locate(str(checkpoint))
    # Small pictures: those of published sizes take a minute.
    plugin = replace(PLUGIN, load_image_builder=lambda folder: BagelPictureBuilder(folder, SIZES))
    located = replace(located, plugin=plugin)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    async with started(ServicePlan(located, located.pipeline, deployment)) as service:
        yield service


@pytest.fixture(scope="module")
def served(service: PipelineService) -> PipelineImageModel:
    return service.image_models[PLUGIN.name]


@pytest.fixture(scope="module")
def answering(service: PipelineService) -> PipelineChatModel:
    return service.chat_models[PLUGIN.name]


async def collect_events(model: PipelineImageModel, request: ImageRequest) -> list[DrawingEvent]:
    async with model.run(request) as drawing:
        return [event async for event in drawing]


async def picture(model: PipelineImageModel, request: ImageRequest) -> NDArray[np.uint8]:
    *_, last = await collect_events(model, request)
    assert isinstance(last, Image)
    return last.pixels


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
    *before, last = await collect_events(served, request)
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
    *_, last = await collect_events(served, request)
    assert isinstance(last, Image)
    np.testing.assert_array_equal(last.pixels, drawn.pixels)
    other = replace(request, earlier=request.earlier[::-1])
    *_, last = await collect_events(served, other)
    assert isinstance(last, Image)
    assert not np.array_equal(last.pixels, drawn.pixels)


@pytest.mark.asyncio(loop_scope="module")
async def test_a_picture_that_is_not_planned_has_no_words(served: PipelineImageModel) -> None:
    events = await collect_events(served, scenario_named("square").request())
    assert isinstance(events[-1], Image)
    assert not [event for event in events if isinstance(event, Thought)]


async def text(model: PipelineChatModel, request: ChatRequest) -> tuple[str, int, FinishReason]:
    """An answer with its thought, its tokens, and why it ended."""
    said, tokens, reason = "", 0, None
    async with model.run(request) as answer:
        async for event in answer.events:
            if isinstance(event, AnswerDelta | Thought):
                said, tokens = said + event.text, tokens + event.tokens
            elif isinstance(event, TextEnd):
                reason = event.reason
    assert reason is not None
    return said, tokens, reason


@pytest.mark.asyncio(loop_scope="module")
async def test_served_answers_are_the_same_alone_and_in_company(
    answering: PipelineChatModel,
) -> None:
    """Through stage processes, with pictures of the published sizes."""
    requests = [
        replace(conversation.request(), seed=number, temperature=0.8 * (number % 2))
        for number, conversation in enumerate(CONVERSATIONS)
    ]
    alone = [await text(answering, request) for request in requests]
    together = await asyncio.gather(*(text(answering, request) for request in requests))
    assert alone == list(together)
    for (said, tokens, reason), conversation in zip(alone, CONVERSATIONS, strict=True):
        assert said
        assert tokens == conversation.max_tokens or reason is FinishReason.STOP
    other = await text(answering, replace(requests[1], seed=9))
    assert other != alone[1]


@pytest.mark.asyncio(loop_scope="module")
async def test_words_are_those_of_the_reference_when_served(
    answering: PipelineChatModel, checkpoint: Path
) -> None:
    conversation: Conversation = CONVERSATIONS[2]
    said, tokens, reason = await text(answering, conversation.request())
    reader = BagelChatBuilder(checkpoint).reader()
    expected = goldens()[f"{conversation.name}/tokens"]
    assert said == reader.read(expected) + reader.end()
    ended = len(expected) < conversation.max_tokens
    assert (tokens, reason) == (len(expected), FinishReason.STOP if ended else FinishReason.LENGTH)


@pytest.mark.asyncio(loop_scope="module")
async def test_one_process_draws_and_answers_at_the_same_time(
    service: PipelineService, served: PipelineImageModel, answering: PipelineChatModel
) -> None:
    """With one set of weights, and neither changes the other."""
    drawn = [scenario_named(name).request() for name in ("edit", "thought", "wide")]
    asked = [conversation.request() for conversation in CONVERSATIONS]
    pictures = [await picture(served, request) for request in drawn]
    answers = [await text(answering, request) for request in asked]
    together = asyncio.gather(*(picture(served, request) for request in drawn))
    said = await asyncio.gather(*(text(answering, request) for request in asked))
    assert answers == said
    for alone, beside in zip(pictures, await together, strict=True):
        np.testing.assert_array_equal(alone, beside)
    stages = [report.stage for report in await service.collect_stage_reports()]
    assert stages == [stage.name for stage in PLUGIN.pipeline.stages]
    await assert_idle(served)
    assert answering.admission == served.admission
    counted = answering.admission.admitted
    assert counted["live"] >= 2 * (len(drawn) + len(asked))


@pytest.mark.asyncio(loop_scope="module")
@pytest.mark.parametrize("events", [0, 1])
async def test_an_answer_that_is_left_is_forgotten(
    served: PipelineImageModel, answering: PipelineChatModel, events: int
) -> None:
    async with answering.run(replace(CONVERSATIONS[0].request(), max_tokens=4000)) as answer:
        for _ in range(events):
            await anext(aiter(answer.events))
    await assert_idle(served)
