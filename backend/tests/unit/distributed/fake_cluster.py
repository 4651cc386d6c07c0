"""Replicas over fake services, and an edge that knows them."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

import numpy as np
from fake_service import FakeModel, FakeService, expected_pcm

from cantata.contract.data.request import SpeechRequest
from cantata.contract.service import SpeechChunk
from cantata.distributed.address import Address
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.key import LinkKey
from cantata.distributed.link.connecting import listen
from cantata.distributed.replica.host import ReplicaHost

KEY = LinkKey(b"a key of thirty-two bytes, about")


class Listed:
    """A directory that the test changes."""

    def __init__(self, addresses: set[Address]) -> None:
        self._addresses = addresses
        self._changed = asyncio.Event()

    def change(self, addresses: set[Address]) -> None:
        self._addresses = addresses
        self._changed.set()

    async def watch(self) -> AsyncIterator[frozenset[Address]]:
        while True:
            self._changed.clear()
            yield frozenset(self._addresses)
            await self._changed.wait()


@dataclass
class Replica:
    """One of them."""

    service: FakeService
    host: ReplicaHost

    @property
    def solo(self) -> FakeModel:
        return self.service.solo


@dataclass
class FakeCluster:
    """An edge and its replicas."""

    edge: RemoteService
    directory: Listed
    key: LinkKey
    replicas: list[Replica] = field(default_factory=list)

    async def add(
        self,
        *,
        identity: str = "the same",
        service: FakeService | None = None,
        spare: tuple[str, ...] = (),
        **behaviour: object,
    ) -> Replica:
        """Another replica; the edge is not told of it."""
        service = service or FakeService()
        for name, value in behaviour.items():
            setattr(service.solo.behaviour, name, value)
        names = (
            *service.models,
            *service.chat_models,
            *service.image_models,
            *service.transcription_models,
        )
        identities = dict.fromkeys(names, identity)
        listener = listen(Address("127.0.0.1", 0))
        host = ReplicaHost(service, identities, listener, self.key, spare)
        await host.start()
        replica = Replica(service, host)
        self.replicas.append(replica)
        return replica

    def report_state(self) -> None:
        """Tell the edge of all there are."""
        self.directory.change({replica.host.address for replica in self.replicas})

    def speaking(self) -> Replica:
        """The one that speaks."""
        [replica] = [replica for replica in self.replicas if replica.solo.counts.open]
        return replica

    async def known(self, count: int) -> None:
        """Return when the edge can order from so many replicas."""
        async with asyncio.timeout(30):
            while sum(report.ready for report in self.edge.get_replica_reports()) != count:  # noqa: ASYNC110
                await asyncio.sleep(0.005)


@asynccontextmanager
async def fake_cluster(
    count: int = 2, key: LinkKey = KEY, **behaviour: object
) -> AsyncIterator[FakeCluster]:
    """An edge and so many replicas, whose models behave like this.

    Args:
        count: at least one.
        key: of all ends.
        behaviour: fields of `Behaviour`.
    """
    directory = Listed(set())
    cluster = FakeCluster(RemoteService(directory, key), directory, key)
    try:
        for _ in range(count):
            await cluster.add(**behaviour)  # type: ignore[arg-type]
        cluster.report_state()
        await cluster.edge.start()
        await cluster.known(count)
        yield cluster
    finally:
        await cluster.edge.stop()
        for replica in cluster.replicas:
            await replica.host.stop()
            assert replica.solo.counts.open == 0


async def spoken(
    cluster: FakeCluster,
    text: str,
    *,
    batch: bool = False,
    more_text: AsyncIterator[str] | None = None,
) -> bytes:
    """What a listener gets, as bytes."""
    return collect_sound(await collect_chunks(cluster, text, batch=batch, more_text=more_text))


async def collect_chunks(
    cluster: FakeCluster,
    text: str,
    *,
    batch: bool = False,
    more_text: AsyncIterator[str] | None = None,
) -> list[SpeechChunk]:
    """The same in pieces."""
    request = SpeechRequest(text, "clara", batch=batch)
    async with cluster.edge.get_model("solo").run(request, more_text=more_text) as utterance:
        return [chunk async for chunk in utterance]


def collect_sound(chunks: list[SpeechChunk]) -> bytes:
    return np.concatenate([chunk.samples for chunk in chunks]).tobytes()


def undisturbed(cluster: FakeCluster, text: str) -> bytes:
    """What the text must sound like."""
    return expected_pcm(text, cluster.replicas[0].solo.behaviour).tobytes()
