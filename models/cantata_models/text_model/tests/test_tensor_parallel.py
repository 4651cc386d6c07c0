"""A model that two processes share: the tokens of one, and an end in common."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from pathlib import Path

import psutil
import pytest
import pytest_asyncio

from cantata.contract.chat_service import AnswerDelta
from cantata.contract.data.chat import ChatRequest, Message, Role, TextPart
from cantata.contract.data.errors import StageDied
from cantata.pipeline.chat_model import PipelineChatModel
from cantata_models.text_model.plugin import THINKER
from cantata_models.text_model.random_checkpoint import write_checkpoint
from cantata_models.text_model.tests.serving import QUESTIONS
from served import plan_small, started

pytestmark = [
    pytest.mark.integration,
    pytest.mark.asyncio(loop_scope="module"),
    pytest.mark.thorough,  # each process starts vLLM
]

SMALL = {"max_model_len": 512, "kv_positions": 2048}
BACK_S = 180.0


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_checkpoint(tmp_path_factory.mktemp("text"), "llama")


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def alone(checkpoint: Path) -> AsyncIterator[PipelineChatModel]:
    async with started(plan_small(checkpoint, thinker=SMALL)) as service:
        yield service.chat_models["text-model"]


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def shared(checkpoint: Path) -> AsyncIterator[PipelineChatModel]:
    plan = plan_small(checkpoint, thinker={**SMALL, "tensor_parallel": 2})
    async with started(plan) as service:
        model = service.chat_models["text-model"]
        yield model
        ranks = processes(model)
    _, alive = await asyncio.to_thread(psutil.wait_procs, ranks, timeout=60)
    assert not alive


def processes(model: PipelineChatModel) -> tuple[psutil.Process, psutil.Process]:
    """The stage's, and the other rank's."""
    stage = psutil.Process(model.orchestrator.stages[THINKER].pid)
    (rank,) = stage.children()
    return stage, rank


async def answer(model: PipelineChatModel, question: str, temperature: float = 0.0) -> str:
    messages = (Message(Role.USER, (TextPart(question),)),)
    request = ChatRequest(messages, max_tokens=24, seed=7, temperature=temperature)
    async with model.run(request) as run:
        return "".join([event.text async for event in run if isinstance(event, AnswerDelta)])


@pytest.mark.parametrize("temperature", [0.0, 0.9])
async def test_two_processes_write_what_one_does(
    alone: PipelineChatModel, shared: PipelineChatModel, temperature: float
) -> None:
    """At once, so that they share steps; sampled, by the same seeds."""
    expected, found = [
        await asyncio.gather(*(answer(model, question, temperature) for question in QUESTIONS))
        for model in (alone, shared)
    ]
    assert found == expected
    assert len(set(expected)) == len(QUESTIONS)


async def test_the_other_rank_is_named_and_no_stranger_can_reach_either(
    shared: PipelineChatModel,
) -> None:
    stage, rank = processes(shared)
    assert rank.cmdline()[0] == f"{stage.cmdline()[0]}:rank-1"
    listening = {
        connection.laddr.ip
        for process in (stage, rank)
        for connection in process.net_connections("inet")
        if connection.status == psutil.CONN_LISTEN
    }
    assert listening == {"127.0.0.1"}


@pytest.mark.parametrize("killed", ["rank", "stage"])
async def test_one_that_dies_takes_the_other_with_it_and_both_are_started_again(
    shared: PipelineChatModel, killed: str
) -> None:
    expected = await answer(shared, QUESTIONS[0])
    stage, rank = processes(shared)
    (rank if killed == "rank" else stage).kill()
    _, alive = await asyncio.to_thread(psutil.wait_procs, [rank, stage], timeout=60)
    assert not alive
    async with asyncio.timeout(BACK_S):
        while True:
            try:
                again = await answer(shared, QUESTIONS[0])
                break
            except StageDied:
                await shared.orchestrator.wait_until_ready(BACK_S)
    assert again == expected
    assert not {*processes(shared)} & {stage, rank}


async def test_heads_that_cannot_be_shared_are_named(checkpoint: Path) -> None:
    plan = plan_small(checkpoint, thinker={**SMALL, "tensor_parallel": 3})
    why = "cannot start: tensor_parallel 3: 2 heads cannot be shared evenly"
    with pytest.raises(StageDied, match=why):
        async with started(plan):
            raise AssertionError("it must not start")
