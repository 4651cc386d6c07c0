"""Answers are those of the publisher's code, in this process and through the served pipeline."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import load_deployment
from cantata.contract.chat_service import FinishReason, TextDelta, TextEnd
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart, Thought
from cantata.contract.data.errors import InvalidRequest
from cantata.contract.model.denoiser import DenoiserOptions
from cantata.engine.chat_model import PipelineChatModel
from cantata.engine.plan import ServicePlan
from cantata.engine.service import create_service
from cantata.plugins import locate
from cantata_models.bagel.chat_builder import ChatBuilder
from cantata_models.bagel.plugin import CHAT
from cantata_models.bagel.ports import ANSWER, SEE
from cantata_models.bagel.random_checkpoint.write import write_checkpoint
from cantata_models.bagel.stages.answer import load_answerer
from cantata_models.bagel.stages.vision import load_eyes
from cantata_models.bagel.tests.checks import CLEAR, goldens
from cantata_models.bagel.tests.drawing import CPU
from cantata_models.bagel.tests.parity.conversations import CONVERSATIONS, Conversation
from cantata_models.bagel.tests.parity.scenarios import SEED, SIZES
from threads import threads


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("checkpoint"), SEED)


def answers(checkpoint: Path, requests: Sequence[ChatRequest]) -> list[NDArray[np.int32]]:
    """Tokens, all answers written together as long as they have steps left."""
    builder, eyes = ChatBuilder(checkpoint, SIZES), load_eyes(checkpoint, CPU)
    model = load_answerer(checkpoint, DenoiserOptions("cpu", "float32"))
    jobs, written = [], list[list[NDArray[np.int32]]]()
    for request in requests:
        inputs: Mapping[str, Any] = builder.build("a", request).request.inputs
        arrived = eyes.run([inputs[SEE]])[0] if SEE in inputs else {}
        assert isinstance(arrived, dict)
        jobs.append(model.begin(inputs[ANSWER], arrived))
        written.append([])
    done = 0
    while left := [n for n, job in enumerate(jobs) if model.steps(job) > done]:
        assert model.advance([jobs[n] for n in left]) == [None] * len(left)
        for number in left:
            written[number].append(model.written(jobs[number]))
        done += 1
    return [np.concatenate(tokens) for tokens in written]


def test_answers_are_the_references_alone_and_in_company(checkpoint: Path) -> None:
    requests = [conversation.request() for conversation in CONVERSATIONS]
    with threads(1):
        together = answers(checkpoint, requests)
        for conversation, request, beside in zip(CONVERSATIONS, requests, together, strict=True):
            assert goldens()[f"{conversation.name}/gap"] > CLEAR
            np.testing.assert_array_equal(beside, goldens()[f"{conversation.name}/tokens"])
            np.testing.assert_array_equal(answers(checkpoint, [request])[0], beside)


@pytest.mark.parametrize(
    ("field", "options"),
    [("top_p", {"top_p": 0.9}), ("presence_penalty", {"presence_penalty": 1.0})],
)
def test_options_that_the_model_has_not_are_refused(
    checkpoint: Path, field: str, options: dict[str, float]
) -> None:
    request = replace(CONVERSATIONS[2].request(), **options)  # type: ignore[arg-type]
    with pytest.raises(InvalidRequest) as caught:
        ChatBuilder(checkpoint).build("a", request)
    assert caught.value.param == field


def test_a_conversation_must_leave_room_for_an_answer(checkpoint: Path) -> None:
    request = ChatRequest((Message(Role.USER, (TextPart("a b " * 20_000),)),))
    with pytest.raises(InvalidRequest, match="positions"):
        ChatBuilder(checkpoint).build("a", request)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def served(checkpoint: Path) -> AsyncIterator[PipelineChatModel]:
    located = locate(f"{CHAT.name}={checkpoint}")
    deployment = load_deployment(CHAT.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.chat_models[CHAT.name]
    await service.stop()


async def text(model: PipelineChatModel, request: ChatRequest) -> tuple[str, int, FinishReason]:
    """An answer with its thought, its tokens, and why it ended."""
    said, tokens, reason = "", 0, None
    async with model.answer(request) as answer:
        async for event in answer.events:
            if isinstance(event, TextDelta | Thought):
                said, tokens = said + event.text, tokens + event.tokens
            elif isinstance(event, TextEnd):
                reason = event.reason
    assert reason is not None
    return said, tokens, reason


@pytest.mark.asyncio(loop_scope="module")
async def test_served_answers_are_the_same_alone_and_in_company(served: PipelineChatModel) -> None:
    """Through stage processes, with pictures of the published sizes."""
    requests = [
        replace(conversation.request(), seed=number, temperature=0.8 * (number % 2))
        for number, conversation in enumerate(CONVERSATIONS)
    ]
    alone = [await text(served, request) for request in requests]
    together = await asyncio.gather(*(text(served, request) for request in requests))
    assert alone == list(together)
    for (said, tokens, reason), conversation in zip(alone, CONVERSATIONS, strict=True):
        assert said
        assert tokens == conversation.most or reason is FinishReason.STOP
    other = await text(served, replace(requests[1], seed=9))
    assert other != alone[1]


@pytest.mark.asyncio(loop_scope="module")
async def test_words_are_those_of_the_reference_when_served(
    served: PipelineChatModel, checkpoint: Path
) -> None:
    conversation: Conversation = CONVERSATIONS[2]
    said, tokens, reason = await text(served, conversation.request())
    reader = ChatBuilder(checkpoint).reader()
    expected = goldens()[f"{conversation.name}/tokens"]
    assert said == reader.read(expected) + reader.end()
    ended = len(expected) < conversation.most
    assert (tokens, reason) == (len(expected), FinishReason.STOP if ended else FinishReason.LENGTH)
