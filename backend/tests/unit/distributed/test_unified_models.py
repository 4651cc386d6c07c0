"""A model that answers and draws, over replicas: one name, two kinds of orders, one queue."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import AsyncExitStack

import numpy as np
import pytest
from fake_chat import CHAT_VOICES, FakeChatModel
from fake_cluster import FakeCluster, Replica, fake_cluster
from fake_picture import CONVERSING, FakeImageModel, expected_picture
from fake_service import FakeService, eventually

from cantata.contract.chat_service import AnswerDelta
from cantata.contract.data.chat import ChatRequest, Message, Modality, Role, TextPart
from cantata.contract.data.chunks import Image
from cantata.contract.data.errors import StageDied
from cantata.contract.data.pictures import ImageRequest

BOTH = "both"
ASKED = ChatRequest((Message(Role.USER, (TextPart("What was said."),)),))
PICTURE = ImageRequest("a red apple", seed=9)


def serving(*kinds: FakeChatModel | FakeImageModel) -> FakeService:
    """A service that has these, too."""
    service = FakeService()
    chats = {one.name: one for one in kinds if isinstance(one, FakeChatModel)}
    images = {one.name: one for one in kinds if isinstance(one, FakeImageModel)}
    service.chat_models = {**service.chat_models, **chats}
    service.image_models = {**service.image_models, **images}
    return service


def answers() -> FakeChatModel:
    return FakeChatModel(BOTH, frozenset({Modality.TEXT, Modality.IMAGE}), (), 0)


def draws() -> FakeImageModel:
    return FakeImageModel(BOTH, CONVERSING)


def asked(replica: Replica) -> tuple[int, int]:
    """Answers and pictures that it was asked for."""
    service = replica.service
    kinds = service.chat_models.get(BOTH), service.image_models.get(BOTH)
    chat, images = (
        len(one.counts.requests) if isinstance(one, FakeChatModel | FakeImageModel) else 0
        for one in kinds
    )
    return chat, images


async def answered(cluster: FakeCluster) -> str:
    async with cluster.edge.get_chat_model(BOTH).run(ASKED) as answer:
        return "".join([event.text async for event in answer if isinstance(event, AnswerDelta)])


async def drawn(cluster: FakeCluster) -> None:
    async with cluster.edge.get_image_model(BOTH).run(PICTURE) as drawing:
        *_, last = [event async for event in drawing]
    assert isinstance(last, Image)
    np.testing.assert_array_equal(last.pixels, expected_picture(PICTURE, *CONVERSING.default_size))


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    """With one replica that does not have the model."""
    async with fake_cluster(1) as cluster:
        yield cluster


async def join(cluster: FakeCluster, *kinds: FakeChatModel | FakeImageModel) -> Replica:
    replica = await cluster.add(service=serving(*kinds))
    cluster.report_state()
    await cluster.known(len(cluster.replicas))
    return replica


async def test_one_name_has_both_kinds_and_one_admission(cluster: FakeCluster) -> None:
    replica = await join(cluster, answers(), draws())
    assert await answered(cluster) == "What was said."
    await drawn(cluster)
    assert asked(replica) == (1, 1)
    edge = cluster.edge
    assert edge.chat_models[BOTH].admission == edge.image_models[BOTH].admission
    assert edge.ready
    (report,) = (one for one in edge.get_replica_reports() if one.routed)
    assert report.routed == {BOTH: 2}


async def test_each_kind_goes_where_it_is_served(cluster: FakeCluster) -> None:
    """While replicas are replaced, some may only do a part of it."""
    whole, part = await join(cluster, answers(), draws()), await join(cluster, draws())
    for _ in range(4):
        assert await answered(cluster) == "What was said."
    pictures = [cluster.edge.get_image_model(BOTH).run(PICTURE) for _ in range(4)]
    async with AsyncExitStack() as held:
        for picture in pictures:
            await held.enter_async_context(picture)
    assert asked(whole)[0] == 4
    assert asked(part)[0] == 0
    assert asked(whole)[1]
    assert asked(part)[1]
    await whole.host.stop()
    await cluster.known(2)
    await drawn(cluster)
    with pytest.raises(StageDied, match=BOTH):
        await answered(cluster)
    assert not cluster.edge.ready
    assert f"no replica takes requests for model {BOTH};" in cluster.edge.trouble


async def test_another_sound_keeps_only_answers_away(cluster: FakeCluster) -> None:
    silent = await join(cluster, answers(), draws())
    takes = frozenset({Modality.TEXT, Modality.IMAGE})
    spoken = await join(cluster, FakeChatModel(BOTH, takes, CHAT_VOICES, 16_000), draws())
    images = silent.service.image_models[BOTH]
    assert isinstance(images, FakeImageModel)
    images.behaviour.slots = 0
    for _ in range(3):
        await drawn(cluster)
    assert asked(spoken) == (0, 3)
    images.behaviour.slots = 1000
    for _ in range(3):
        assert await answered(cluster) == "What was said."
    assert asked(spoken)[0] == 0


async def test_both_kinds_see_one_queue(cluster: FakeCluster) -> None:
    chat, images = answers(), draws()
    images.behaviour.slots, chat.behaviour.may_continue = 1, asyncio.Event()
    await join(cluster, chat, images)
    first = asyncio.create_task(answered(cluster))
    await eventually(lambda: chat.counts.open)
    second = asyncio.create_task(answered(cluster))
    edge = cluster.edge
    await eventually(lambda: edge.waiting[BOTH])
    assert edge.waiting[BOTH] == 1
    assert edge.chat_models[BOTH].admission == edge.image_models[BOTH].admission
    assert edge.image_models[BOTH].admission.waiting == 1
    chat.behaviour.may_continue.set()
    assert list(await asyncio.gather(first, second)) == ["What was said."] * 2
