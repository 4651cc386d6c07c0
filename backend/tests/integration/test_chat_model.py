"""A model that answers: text while it thinks, sound while the text is written, each without the
other where that is wanted."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import numpy as np
import pytest
import pytest_asyncio

from cantata.config import load_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.chat_service import AnswerDelta, AnswerEvent, FinishReason, TextEnd
from cantata.contract.data.chat import AudioPart, CallStarted, ChatRequest, Message, Role, TextPart
from cantata.contract.data.errors import InvalidRequest, Overloaded, VoiceNotFound
from cantata.contract.service import SpeechChunk
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import create_service
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.omni import PLUGIN, SPEAKERS

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

TEXTS = ("What is the time?", "Yes.", "Tell me about the harbour.", "Why?", "And then what?")


def asked(number: int, voice: str | None = "tiny") -> ChatRequest:
    """Another text, length, seed and, for some, a sound for each number."""
    sound = AudioPart(np.full((number, 1), 0.1 * number, np.float32), 16_000)
    parts = (*((sound,) if number % 2 else ()), TextPart(TEXTS[number % len(TEXTS)]))
    messages = (Message(Role.USER, parts),)
    return ChatRequest(messages, voice, max_tokens=20 + number, seed=number, temperature=0.8)


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def model(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[PipelineChatModel]:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    located = LocatedModel(PLUGIN, folder)
    deployment = load_deployment(PLUGIN.deployment, located.pipeline)
    service = create_service(ServicePlan(located, located.pipeline, deployment))
    await service.start()
    yield service.chat_models[PLUGIN.name]
    await service.stop()


async def events(model: PipelineChatModel, request: ChatRequest) -> list[AnswerEvent]:
    """Asks again when rejected, as on a slow machine."""
    try:
        async with model.run(request) as answer:
            return [event async for event in answer]
    except Overloaded as busy:
        await asyncio.sleep(busy.retry_after_s)
        return await events(model, request)


def join_text(found: list[AnswerEvent]) -> str:
    return "".join(event.text for event in found if isinstance(event, AnswerDelta))


def collect_sound(found: list[AnswerEvent]) -> np.ndarray:
    return np.concatenate([event.samples for event in found if isinstance(event, SpeechChunk)])


async def held(model: PipelineChatModel) -> dict[str, int]:
    return {
        f"{name}.{what}": count
        for name, stage in model.orchestrator.stages.items()
        for what, count in (await stage.get_counts()).items()
        if count
    }


async def test_an_answer_has_text_sound_and_one_end(model: PipelineChatModel) -> None:
    found = await events(model, asked(0))
    (end,) = [event for event in found if isinstance(event, TextEnd)]
    tokens = sum(event.tokens for event in found if isinstance(event, AnswerDelta))
    assert join_text(found)
    assert tokens <= 20
    assert (end.reason is FinishReason.LENGTH) == (tokens == 20)
    assert collect_sound(found).shape[1] == model.channels == 1
    assert model.sample_rate == 24_000
    assert await held(model) == {}


async def test_what_nobody_waits_for_is_the_same_and_counts_as_that(
    model: PipelineChatModel,
) -> None:
    live = await events(model, asked(3))
    before = model.admission.admitted
    later = await events(model, replace(asked(3), batch=True))
    after = model.admission.admitted
    assert (after["live"], after["batch"]) == (before["live"], before["batch"] + 1)
    assert join_text(later) == join_text(live)
    np.testing.assert_array_equal(collect_sound(later), collect_sound(live))


async def test_text_leaves_while_the_model_thinks_and_sound_follows_before_its_end(
    model: PipelineChatModel,
) -> None:
    found = await events(model, replace(asked(2), max_tokens=220))
    kinds = [type(event) for event in found]
    assert SpeechChunk in kinds[kinds.index(AnswerDelta) : kinds.index(TextEnd)]
    assert kinds.count(AnswerDelta) > 10


async def test_read_alone_the_text_is_the_same_and_no_stage_that_speaks_hears_of_it(
    model: PipelineChatModel,
) -> None:
    spoken = await events(model, asked(1))
    async with model.run(asked(1, voice=None)) as answer:
        assert answer.prompt_tokens == 1 + len(TEXTS[1])
        read = [await anext(aiter(answer))]
        for speaker in SPEAKERS:
            assert set((await model.orchestrator.stages[speaker].get_counts()).values()) == {0}
        read += [event async for event in answer]
    assert join_text(read) == join_text(spoken)
    assert not [event for event in read if isinstance(event, SpeechChunk)]
    assert await held(model) == {}


async def test_calls_of_tools_stand_where_they_were_written(model: PipelineChatModel) -> None:
    request = asked(0, voice=None)
    plain = await events(model, request)
    found = await events(model, replace(request, tools=('{"type": "function"}',)))
    written = "".join(
        f"<{event.name}" if isinstance(event, CallStarted) else event.text
        for event in found
        if not isinstance(event, TextEnd | SpeechChunk)
    )
    assert model.calls_tools
    assert any(isinstance(event, CallStarted) for event in found)
    assert "<" not in join_text(found)
    assert written == join_text(plain)
    tokens = [
        sum(event.tokens for event in some if isinstance(event, AnswerDelta))
        for some in (plain, found)
    ]
    assert tokens[0] == tokens[1]
    assert [type(event) for event in found].count(TextEnd) == 1


async def test_together_each_says_what_it_says_alone(model: PipelineChatModel) -> None:
    requests = [asked(number, None if number == 3 else "tiny") for number in range(6)]
    alone = [await events(model, request) for request in requests]
    together = await asyncio.gather(*(events(model, request) for request in requests))
    for number, (one, other) in enumerate(zip(alone, together, strict=True)):
        assert join_text(one) == join_text(other), number
        if number != 3:
            np.testing.assert_array_equal(collect_sound(one), collect_sound(other))
    assert len({join_text(one) for one in alone}) == len(alone)
    assert await held(model) == {}


async def test_unread_sound_does_not_keep_the_model_from_thinking(
    model: PipelineChatModel,
) -> None:
    async with model.run(replace(asked(2), max_tokens=40)) as answer:
        stream = aiter(answer)
        while not isinstance(await anext(stream), SpeechChunk):
            pass
        async with asyncio.timeout(60):
            thinker = model.orchestrator.stages["thinker"]
            while any((await thinker.get_counts()).values()):  # noqa: ASYNC110 (no event to wait for)
                await asyncio.sleep(0.01)
        rest = [event async for event in stream]
    assert any(isinstance(event, TextEnd) for event in rest)


async def test_leaving_frees_every_stage(model: PipelineChatModel) -> None:
    for leave_at in (AnswerDelta, SpeechChunk, TextEnd):
        async with model.run(replace(asked(2), max_tokens=40)) as answer:
            async for event in answer:
                if isinstance(event, leave_at):
                    break
        assert await held(model) == {}, leave_at


async def test_what_cannot_be_answered_is_named(model: PipelineChatModel) -> None:
    empty = ChatRequest((Message(Role.USER, (TextPart(""),)),))
    with pytest.raises(InvalidRequest, match="nothing to answer"):
        await events(model, empty)
    with pytest.raises(VoiceNotFound, match="tiny"):
        model.get_voice("nobody")
    too_long = ChatRequest((Message(Role.USER, (TextPart("x" * 300),)),))
    with pytest.raises(InvalidRequest, match="more than the 256"):
        await events(model, too_long)
    assert await held(model) == {}
