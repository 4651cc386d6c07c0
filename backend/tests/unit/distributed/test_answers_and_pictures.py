"""Models that answer and that draw, over replicas: the same events, through a loss as well."""

from __future__ import annotations

import asyncio
from collections import defaultdict
from collections.abc import AsyncIterator
from dataclasses import fields, replace

import numpy as np
import pytest
from fake_chat import FakeChatModel
from fake_cluster import FakeCluster, Replica, fake_cluster
from fake_picture import FakeImageModel, expected_picture
from fake_service import FakeService, eventually
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.chat_service import (
    AnswerDelta,
    AnswerEvent,
    ChatModel,
    FinishReason,
    TextEnd,
)
from cantata.contract.data.chat import (
    AudioPart,
    CallArguments,
    CallStarted,
    ChatRequest,
    ImagePart,
    Message,
    Role,
    TextPart,
    Thought,
    ToolCall,
    VideoPart,
)
from cantata.contract.data.chunks import Image, Progress
from cantata.contract.data.errors import (
    ContextFull,
    InvalidRequest,
    Overloaded,
    Quarantined,
    ReplicaLost,
)
from cantata.contract.data.pictures import ImageRequest, Turn
from cantata.contract.image_service import DrawingEvent, ImageModel
from cantata.contract.service import SpeechChunk
from cantata.distributed.chat_messages import AnswerOptions
from cantata.distributed.edge.replay import AnswerReplay
from cantata.distributed.model_advertisement import build_advertisement

ANSWER = "What was said, said again. " * 10
PIXELS = np.random.default_rng(0).integers(0, 256, (32, 48, 3), np.uint8)
ASKED = ChatRequest(
    (
        Message(Role.SYSTEM, (TextPart("Be brief."),)),
        Message(Role.ASSISTANT, (), (ToolCall("weather", '{"city": "Oslo"}'),)),
        Message(Role.TOOL, (TextPart("Snow."),)),
        Message(
            Role.USER,
            (
                AudioPart(np.linspace(-1, 1, 600, dtype=np.float32).reshape(300, 2), 16_000),
                ImagePart(PIXELS),
                VideoPart(np.stack([PIXELS, PIXELS[::-1]]), 2.0),
                VideoPart(np.stack([PIXELS]), 1.0, AudioPart(np.ones((5, 1), np.float32), 8_000)),
                TextPart(ANSWER),
            ),
        ),
    ),
    voice="ethan",
    tools=('{"name": "weather"}',),
    seed=4,
    temperature=0.5,
    top_k=7,
)
PICTURE = ImageRequest("a red apple", references=(), width=64, height=48, seed=9, previews=2)
THOUGHT = ("It should ", "be round", ".")


async def collect_events(model: ChatModel, request: ChatRequest = ASKED) -> list[AnswerEvent]:
    async with model.run(request) as answer:
        return [event async for event in answer]


def iterate_parts(events: list[AnswerEvent]) -> tuple[str, int, bytes, list[FinishReason]]:
    """Text, tokens, sound and ends, each joined."""
    deltas = [event for event in events if isinstance(event, AnswerDelta)]
    sound = [event.samples for event in events if isinstance(event, SpeechChunk)]
    return (
        "".join(delta.text for delta in deltas),
        sum(delta.tokens for delta in deltas),
        np.concatenate(sound).tobytes() if sound else b"",
        [event.reason for event in events if isinstance(event, TextEnd)],
    )


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with fake_cluster(2) as cluster:
        yield cluster


def omni(replica: Replica) -> FakeChatModel:
    return replica.service.omni


def painter(replica: Replica) -> FakeImageModel:
    return replica.service.painter


def editor(replica: Replica) -> FakeImageModel:
    return replica.service.editor


async def lose(replica: Replica) -> None:
    for session in list(replica.host._sessions):
        session.link.close()
    await replica.host.stop()


async def test_an_answer_and_what_was_asked_arrive_whole(cluster: FakeCluster) -> None:
    model = cluster.edge.get_chat_model(None)
    alone = FakeService().omni
    async with model.run(ASKED) as answer:
        assert [m.step for m in answer.milestones] == ["route", "text", "admit"]
        assert answer.prompt_tokens == 7
        heard = [event async for event in answer]
    assert iterate_parts(heard) == iterate_parts(await collect_events(alone))
    [asked] = [one for replica in cluster.replicas for one in omni(replica).counts.requests]
    assert replace(asked, messages=()) == replace(ASKED, messages=())
    for sent, arrived in zip(ASKED.messages[1].parts, asked.messages[1].parts, strict=True):
        assert type(sent) is type(arrived)
        match sent, arrived:
            case (AudioPart(), AudioPart()):
                np.testing.assert_array_equal(sent.samples, arrived.samples)
            case (ImagePart(), ImagePart()):
                np.testing.assert_array_equal(sent.pixels, arrived.pixels)
            case (VideoPart(), VideoPart()):
                np.testing.assert_array_equal(sent.frames, arrived.frames)
                assert arrived.frames_per_s == 2.0
            case _:
                assert sent == arrived
    described = ("name", "takes", "calls_tools", "thinks", "voices", "sample_rate", "channels")
    for name in (*described, "spoken_by"):
        assert getattr(model, name) == getattr(alone, name)


async def test_a_replica_says_who_speaks_for_a_model() -> None:
    service = FakeService()
    service.reader.spoken_by = "duo"
    cards = build_advertisement(service, defaultdict(str))
    assert {one.name: one.spoken_by for one in cards.answering} == {"omni": None, "reader": "duo"}


async def test_an_answer_that_nobody_waits_for_arrives_as_that(cluster: FakeCluster) -> None:
    later = replace(ASKED, batch=True)
    expected = iterate_parts(await collect_events(FakeService().omni))
    assert (
        iterate_parts(await collect_events(cluster.edge.get_chat_model("omni"), later)) == expected
    )
    requests = [one for replica in cluster.replicas for one in omni(replica).counts.requests]
    assert [one.batch for one in requests] == [True]


async def test_an_answer_survives_the_loss_of_its_replica(cluster: FakeCluster) -> None:
    alone = FakeService().omni
    for model in (alone, *map(omni, cluster.replicas)):
        model.behaviour.samples = 2_000  # in all, more than a link's window
    expected = iterate_parts(await collect_events(alone))
    events: list[AnswerEvent] = []
    async with cluster.edge.get_chat_model("omni").run(ASKED) as answer:
        async for event in answer:
            events.append(event)
            if len(events) == 20:
                [busy] = [one for one in cluster.replicas if omni(one).counts.open]
                await lose(busy)
    assert iterate_parts(events) == expected
    assert [len(omni(replica).counts.requests) for replica in cluster.replicas] == [1, 1]


@pytest.mark.parametrize(
    "error", [InvalidRequest("no", "messages"), ContextFull("too long"), Quarantined("twice")]
)
async def test_an_answers_errors_arrive_as_they_are(cluster: FakeCluster, error: Exception) -> None:
    for replica in cluster.replicas:
        omni(replica).behaviour.fail_after, omni(replica).behaviour.error = 3, error
    for _ in range(2):
        with pytest.raises(type(error)) as arrived:
            await collect_events(cluster.edge.get_chat_model("omni"))
        assert arrived.value.args == error.args
    asked = sum(len(omni(replica).counts.requests) for replica in cluster.replicas)
    assert asked == (1 if isinstance(error, Quarantined) else 2)


async def drawn(model: ImageModel, request: ImageRequest) -> list[DrawingEvent]:
    async with model.run(request) as drawing:
        return [event async for event in drawing]


async def test_a_picture_and_its_progress_arrive(cluster: FakeCluster) -> None:
    model = cluster.edge.get_image_model(None)
    async with model.run(PICTURE) as drawing:
        assert (drawing.width, drawing.height, drawing.steps) == (64, 48, 4)
        events = [event async for event in drawing]
    assert isinstance(events[-1], Image)
    np.testing.assert_array_equal(events[-1].pixels, expected_picture(PICTURE, 64, 48))
    steps = [event.step for event in events if isinstance(event, Progress)]
    assert steps == sorted(set(steps))
    assert model.limits == FakeService().painter.limits
    edited = replace(PICTURE, references=(PIXELS,))
    [image] = [
        event
        for event in await drawn(cluster.edge.get_image_model("editor"), edited)
        if isinstance(event, Image)
    ]
    np.testing.assert_array_equal(image.pixels, expected_picture(edited, 64, 48))


async def test_a_conversation_arrives_with_its_pictures(cluster: FakeCluster) -> None:
    turn = Turn(Role.USER, (PIXELS, PIXELS[:8]), "Two of them.")
    await drawn(cluster.edge.get_image_model("editor"), replace(PICTURE, earlier=(turn,)))
    requests = [one for replica in cluster.replicas for one in editor(replica).counts.requests]
    ((asked,),) = [request.earlier for request in requests]
    assert (asked.role, asked.text) == (Role.USER, "Two of them.")
    for sent, arrived in zip(turn.pictures, asked.pictures, strict=True):
        np.testing.assert_array_equal(sent, arrived)


async def test_a_picture_is_drawn_again_where_its_replica_was_lost(cluster: FakeCluster) -> None:
    """Its progress goes on, and its thought is told once."""
    for replica in cluster.replicas:
        painter(replica).behaviour.may_continue = asyncio.Event()
        painter(replica).behaviour.thought = THOUGHT
    drawing = asyncio.create_task(drawn(cluster.edge.get_image_model("painter"), PICTURE))
    await eventually(lambda: any(painter(one).counts.open for one in cluster.replicas))
    [busy] = [one for one in cluster.replicas if painter(one).counts.open]
    [other] = [one for one in cluster.replicas if one is not busy]
    await lose(busy)
    await eventually(lambda: painter(other).counts.open)
    may_continue = painter(other).behaviour.may_continue
    assert may_continue is not None
    may_continue.set()
    events = await drawing
    assert isinstance(events[-1], Image)
    np.testing.assert_array_equal(events[-1].pixels, expected_picture(PICTURE, 64, 48))
    steps = [event.step for event in events if isinstance(event, Progress)]
    assert steps == sorted(set(steps))
    thoughts = [event for event in events if isinstance(event, Thought)]
    assert "".join(thought.text for thought in thoughts) == "".join(THOUGHT)
    assert sum(thought.tokens for thought in thoughts) == len(THOUGHT)


async def test_pictures_go_to_another_replica_or_are_refused(cluster: FakeCluster) -> None:
    first, second = (painter(replica) for replica in cluster.replicas)
    first.behaviour.slots = 0
    for _ in range(4):
        await drawn(cluster.edge.get_image_model("painter"), PICTURE)
    assert (len(first.counts.requests), len(second.counts.requests)) == (0, 4)
    second.behaviour.slots = 0
    with pytest.raises(Overloaded):
        await drawn(cluster.edge.get_image_model("painter"), PICTURE)


def test_no_option_of_a_conversation_is_left_out() -> None:
    options = {field.name for field in fields(AnswerOptions)}
    assert options == {field.name for field in fields(ChatRequest)} - {"messages"}


cuts = st.lists(st.integers(1, 6), min_size=1, max_size=12)


@given(cuts, cuts, st.integers(1, 12))
def test_a_spliced_answer_has_each_character_and_token_once(
    first: list[int], second: list[int], lost_after: int
) -> None:
    """However the two replicas cut the same text."""
    text = ("Grüße, 世界! " * 12)[: max(sum(first), sum(second))]

    def deltas(lengths: list[int]) -> list[AnswerEvent]:
        events, start = list[AnswerEvent](), 0
        for length in [*lengths, len(text)]:
            piece = text[start : start + length]
            events.append(AnswerDelta(piece, len(piece)))
            start += length
        return [*events, TextEnd(FinishReason.STOP)]

    replay = AnswerReplay(24_000)
    heard = [new for one in deltas(first)[:lost_after] if (new := replay.take(one))]
    replay.restart()
    heard += [new for one in deltas(second) if (new := replay.take(one))]
    replay.check_end()
    assert iterate_parts(heard) == (text, len(text), b"", [FinishReason.STOP])


def test_a_spliced_thought_is_told_once() -> None:
    """However it is cut again; another thought is another answer."""
    replay = AnswerReplay(24_000)
    assert replay.take(Thought("To b", 2)) == Thought("To b", 2)
    assert replay.is_begun
    replay.restart()
    assert replay.take(Thought("To ", 1)) is None
    assert replay.take(Thought("be, or", 3)) == Thought("e, or", 2)
    replay.restart()
    with pytest.raises(ReplicaLost, match="differently"):
        replay.take(Thought("To bee, or", 5))
    replay.restart()
    replay.take(Thought("To", 1))
    with pytest.raises(ReplicaLost, match="shorter"):
        replay.check_end()


def test_a_spliced_answer_has_each_call_once() -> None:
    replay = AnswerReplay(24_000)
    first = [CallStarted("a"), CallArguments("{}"), CallStarted("a"), CallArguments('{"x"')]
    assert [replay.take(event) for event in first] == first  # type: ignore[arg-type]
    replay.restart()
    again = [CallStarted("a"), CallArguments("{}"), CallStarted("a"), CallArguments('{"x": 1}')]
    again += [CallStarted("b"), CallArguments("{}")]
    new = [replay.take(event) for event in again]  # type: ignore[arg-type]
    assert new == [None, None, None, CallArguments(": 1}"), CallStarted("b"), CallArguments("{}")]
    replay.check_end()
    replay.restart()
    replay.take(CallStarted("b"))
    with pytest.raises(ReplicaLost, match="shorter"):
        replay.check_end()


def test_another_answer_is_no_continuation() -> None:
    replay = AnswerReplay(24_000)
    replay.take(AnswerDelta("To be", 2))
    replay.restart()
    with pytest.raises(ReplicaLost, match="differently"):
        replay.take(AnswerDelta("Two bees", 2))
    replay = AnswerReplay(24_000)
    replay.take(AnswerDelta("To be", 2))
    replay.restart()
    replay.take(AnswerDelta("To", 1))
    with pytest.raises(ReplicaLost, match="shorter"):
        replay.check_end()
