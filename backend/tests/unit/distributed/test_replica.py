"""A replica before edges that are not ours: what they may send, and what becomes of it."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest
from fake_cluster import KEY, FakeCluster, fake_cluster, spoken, undisturbed
from fake_service import eventually

from cantata.contract.data.errors import CantataError, ModelNotFound, Overloaded, StageDied
from cantata.contract.data.faults import Fault, to_error
from cantata.contract.data.request import SpeechRequest
from cantata.distributed.link.connecting import connect
from cantata.distributed.link.errors import LinkLost
from cantata.distributed.link.frames import END
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.messages import FrameKind, MoreText, ReplicaState, SpeakRequest
from cantata.distributed.serialization import decode, encode

TEXT = "One two three."


@asynccontextmanager
async def linked(cluster: FakeCluster) -> AsyncIterator[tuple[Link, list[ReplicaState]]]:
    """A link of the test's own to the first replica, and what it tells."""
    heartbeat, states = Heartbeat(), list[ReplicaState]()
    link = Link(
        await connect(cluster.replicas[0].host.address, KEY),
        LinkSide.CONNECTED,
        heartbeat,
        "replica",
        on_message=lambda kind, body: None,
        on_state=lambda body: states.append(decode(body, ReplicaState)),
    )
    link.begin()
    try:
        yield link, states
    finally:
        link.close()
        heartbeat.close()


async def to_fault(link: Link, message: SpeakRequest) -> CantataError:
    """How an order ends."""
    stream = link.open()
    stream.post(FrameKind.SPEAK, *encode(message))
    while (frame := await stream.receive()) is not None:
        if frame.kind == END:
            stream.end()
            return to_error(decode(frame.body, Fault))
    raise AssertionError("it did not fail")


@pytest.mark.parametrize(
    "frames",
    [
        [(FrameKind.OPENED, b"")],
        [(FrameKind.SPEAK, b"nonsense")],
        [(200, b"")],
        [
            (
                FrameKind.SPEAK,
                encode(SpeakRequest("w", "solo", SpeechRequest("", "clara"), False, True)),
            ),
            (FrameKind.SOUND, b"no text"),
        ],
        [
            (
                FrameKind.SPEAK,
                encode(SpeakRequest("w", "solo", SpeechRequest("", "clara"), False, True)),
            ),
            (FrameKind.TEXT, b"no text"),
        ],
        [(FrameKind.ANSWER, encode(MoreText("an order of another kind")))],
        [(FrameKind.DRAW, b"\x00" * 40)],
    ],
)
async def test_garbage_ends_the_link_and_nothing_else(
    frames: list[tuple[int, bytes | tuple[bytes, ...]]],
) -> None:
    async with fake_cluster(1, interval_s=0.002) as cluster:
        speaking = asyncio.create_task(spoken(cluster, TEXT * 10))
        async with linked(cluster) as (link, _):
            stream = link.open()
            for kind, body in frames:
                stream.post(kind, *(body if isinstance(body, tuple) else (body,)))
            async with asyncio.timeout(60):
                assert isinstance(await link.wait_until_lost(), LinkLost)
        assert await speaking == undisturbed(cluster, TEXT * 10)
        await eventually(lambda: cluster.replicas[0].host.status.models["solo"].in_use == 0)


async def test_what_cannot_be_served_ends_with_the_error() -> None:
    async with fake_cluster(1, capacity=1) as cluster, linked(cluster) as (link, states):
        unknown = await to_fault(link, SpeakRequest("w", "nobody", SpeechRequest(TEXT, "clara")))
        assert isinstance(unknown, ModelNotFound)
        cluster.replicas[0].solo.behaviour.may_sound = may_sound = asyncio.Event()
        speaking = asyncio.create_task(spoken(cluster, TEXT))
        await eventually(lambda: cluster.replicas[0].solo.counts.open == 1)
        full = await to_fault(link, SpeakRequest("w", "solo", SpeechRequest(TEXT, "clara")))
        assert isinstance(full, Overloaded)
        await eventually(lambda: states and states[-1].models["solo"].free == 0)
        assert states[-1].models["solo"].ordered == 1
        may_sound.set()
        await speaking
        await eventually(lambda: states[-1].models["solo"].free == 1)
        draining = asyncio.create_task(cluster.replicas[0].host.drain(5))
        await eventually(lambda: states[-1].draining)
        assert states[-1].models["solo"].free == 0
        late = await to_fault(link, SpeakRequest("w", "solo", SpeechRequest(TEXT, "clara")))
        assert isinstance(late, StageDied)
        assert await draining


async def test_whoever_has_no_key_costs_little(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.link.accepting.HELLO_S", 0.2)
    async with fake_cluster(1) as cluster:
        strangers = connect_strangers(cluster, 20)
        closed = await asyncio.gather(*(asyncio.to_thread(_read_all, one) for one in strangers))
        assert all(len(data) < 100 for data in closed)
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_whoever_says_nothing_keeps_no_edge_out(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.link.accepting.MAX_STRANGERS", 4)
    monkeypatch.setattr("cantata.distributed.link.accepting.HELLO_S", 300)
    async with fake_cluster(1) as cluster:
        strangers = connect_strangers(cluster, 8)
        closed = await asyncio.gather(*(asyncio.to_thread(_read_all, one) for one in strangers[:4]))
        assert all(len(data) < 100 for data in closed), "the oldest make room"
        async with linked(cluster) as (_, states):
            await eventually(lambda: bool(states))
        for stranger in strangers[4:]:
            stranger.close()


async def test_an_edge_too_many_is_sent_away(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.replica.host.MAX_EDGES", 2)
    async with fake_cluster(1) as cluster, linked(cluster) as (_, states):
        await eventually(lambda: bool(states))
        async with linked(cluster) as (link, _):
            async with asyncio.timeout(60):
                assert "has closed the link" in (await link.wait_until_lost()).reason
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


def connect_strangers(cluster: FakeCluster, count: int) -> list[socket.socket]:
    """Connections that say nothing."""
    address = cluster.replicas[0].host.address
    return [socket.create_connection((address.host, address.port)) for _ in range(count)]


def _read_all(stranger: socket.socket) -> bytes:
    """What it is sent until it is closed."""
    data = b""
    with stranger:
        stranger.settimeout(30)
        try:
            while part := stranger.recv(4096):
                data += part
        except ConnectionResetError:
            pass
        return data
