"""Two replicas in processes of their own, as two hosts where the machine allows it, and an edge:
processes are killed, stopped and told to leave, cables are pulled. Every listener hears the
undisturbed samples.
"""

from __future__ import annotations

import asyncio
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from itertools import count

import numpy as np
import psutil
import pytest
import pytest_asyncio
from prometheus_client.parser import text_string_to_metric_families

import namespaces
from cantata.contract.data.errors import ReplicaLost, StageDied
from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata.distributed.address import StaticDirectory
from cantata.distributed.edge.replicas import choose_by_affinity, hash_recording
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.edge.waiting import MAX_WAIT_S
from cantata.distributed.key import LinkKey
from cantata.metrics import Metrics
from host_process import KEY, HostProcess, process_on_host
from stall_free_clock import a_clock_that_leaves_out_stalls
from tiny_talker.checkpoint import save_tiny_checkpoint

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 4
START_S = 240.0
WITHIN_S = 2.0
"""From a fault to new sound, or to the error."""
PORT = 8100
TEXT = "One two three four five six seven eight nine ten."
"""50 frames of 0.8 s: far more than links and decoders hold for a listener that does not read."""
RECORDINGS, ROUNDS = 4, 3
"""Recordings for each replica, and how often each is spoken like."""
HEARD = 3
"""Chunks before a fault."""


@dataclass
class TinyCluster:
    """An edge and its two replicas."""

    edge: RemoteService
    replicas: dict[str, HostProcess]
    """By address."""

    async def known(self, count: int) -> None:
        """Return when the edge can order from so many replicas."""
        async with asyncio.timeout(START_S):
            while sum(report.ready for report in self.edge.get_replica_reports()) != count:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    def streams(self) -> dict[str, int]:
        """Open at each replica."""
        return {report.address: report.streams for report in self.edge.get_replica_reports()}

    async def idle(self) -> None:
        """Return when no replica's stage holds anything."""
        async with asyncio.timeout(30):
            while any(  # noqa: ASYNC110
                count
                for report in await self.edge.collect_stage_reports()
                if report.alive
                for count in report.counts.values()
            ):
                await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def replicas(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[HostProcess]]:
    checkpoint = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(checkpoint)
    with ExitStack() as stack:
        command = ("tiny_talker.replica", str(checkpoint), "{address}", str(SLOTS))
        made = [stack.enter_context(process_on_host(n, PORT, *command)) for n in range(2)]
        for replica in made:
            replica.start()
        for replica in made:
            replica.wait_until_ready()
        yield made


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def cluster(replicas: list[HostProcess]) -> AsyncIterator[TinyCluster]:
    directory = StaticDirectory(replica.address for replica in replicas)
    edge = RemoteService(directory, LinkKey(KEY.encode()))
    await edge.start()
    yield TinyCluster(edge, {str(replica.address): replica for replica in replicas})
    await edge.stop()


async def spoken(cluster: TinyCluster, text: str, recording: ReferenceAudio | None = None) -> bytes:
    request = SpeechRequest(text, "tiny", reference=recording)
    async with cluster.edge.get_model("tiny").run(request) as utterance:
        return np.concatenate([chunk.samples async for chunk in utterance]).tobytes()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(cluster: TinyCluster) -> list[bytes]:
    """What each text sounds like; on both replicas the same."""
    await cluster.known(2)
    once = [await spoken(cluster, join_text(number)) for number in range(SLOTS)]
    again = [await spoken(cluster, join_text(number)) for number in reversed(range(SLOTS))]
    assert once == again[::-1]
    return once


def join_text(number: int) -> str:
    return f"{'abcd'[number]} {TEXT}"


@dataclass
class Listener:
    """One that reads a few chunks, then waits until it is told to go on."""

    parts: list[bytes] = field(default_factory=list)
    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, cluster: TinyCluster, text: str) -> bytes:
        async with cluster.edge.get_model("tiny").run(SpeechRequest(text, "tiny")) as utterance:
            async for chunk in utterance:
                self.parts.append(chunk.samples.tobytes())
                if len(self.parts) == HEARD:
                    self.begun.set()
                    await self.may_go_on.wait()
        return b"".join(self.parts)


@dataclass
class Crowd:
    """Listeners on both replicas, all in the middle of their text."""

    listeners: list[Listener]
    tasks: list[asyncio.Task[bytes]]

    def go_on(self) -> None:
        for listener in self.listeners:
            listener.may_go_on.set()

    async def heard(self) -> list[bytes]:
        async with asyncio.timeout(120):
            return await asyncio.gather(*self.tasks)


async def crowd(cluster: TinyCluster) -> Crowd:
    listeners = [Listener() for _ in range(SLOTS)]
    tasks = [
        asyncio.create_task(listener.listen(cluster, join_text(number)))
        for number, listener in enumerate(listeners)
    ]
    await asyncio.gather(*(listener.begun.wait() for listener in listeners))
    return Crowd(listeners, tasks)


async def on(cluster: TinyCluster) -> HostProcess:
    """A replica that has half of the streams."""
    counts = cluster.streams()
    assert sorted(counts.values()) == [SLOTS // 2, SLOTS // 2]
    return cluster.replicas[min(counts)]


def reused(metrics: str, what: str) -> list[float]:
    """What each replica's encoder has counted."""
    found = {
        sample.labels["replica"]: sample.value
        for family in text_string_to_metric_families(metrics)
        for sample in family.samples
        if sample.name == f"cantata_stage_{what}_total"
    }
    return [found[replica] for replica in sorted(found)]


def recordings_for(cluster: TinyCluster) -> list[ReferenceAudio]:
    """So many that are at home at each replica, whatever its address is."""
    free = dict.fromkeys(cluster.replicas, SLOTS)
    found: dict[str | None, list[ReferenceAudio]] = {replica: [] for replica in free}
    for number in count():
        samples = np.random.default_rng(number).random((6, 1), np.float32)
        recording = ReferenceAudio(samples, 24_000)
        known = found[choose_by_affinity(free, hash_recording(recording))]
        known += [recording] * (len(known) < RECORDINGS)
        if all(len(known) == RECORDINGS for known in found.values()):
            break
    return [recording for known in found.values() for recording in known]


@pytest.mark.thorough
async def test_each_recording_is_encoded_at_one_replica_and_then_found_there(
    cluster: TinyCluster,
) -> None:
    await cluster.known(2)
    recordings = recordings_for(cluster)
    sounds = [
        [await spoken(cluster, "Hi.", recording) for recording in recordings] for _ in range(ROUNDS)
    ]
    assert len(set(sounds[0])) == 2 * RECORDINGS
    assert sounds == [sounds[0]] * ROUNDS
    edge = cluster.edge
    metrics = (
        Metrics()
        .render(await edge.collect_stage_reports(), {}, edge.get_replica_reports())
        .decode()
    )
    encodes, hits = reused(metrics, "encodes"), reused(metrics, "hits")
    assert encodes == [RECORDINGS] * 2
    assert hits == [(ROUNDS - 1) * RECORDINGS] * 2


async def test_a_pulled_cable_is_not_heard(cluster: TinyCluster, undisturbed: list[bytes]) -> None:
    if not namespaces.are_possible():
        pytest.skip(namespaces.WHY_NOT)
    await cluster.known(2)
    listening = await crowd(cluster)
    replica = await on(cluster)
    assert replica.host is not None
    with a_clock_that_leaves_out_stalls() as passed:
        replica.host.pull()
        listening.go_on()
        await cluster.known(1)
        assert passed[0] < WITHIN_S
        assert await listening.heard() == undisturbed
    replica.host.plug_in()
    await cluster.known(2)
    await cluster.idle()


async def test_a_replica_that_stands_still_is_not_heard(
    cluster: TinyCluster, undisturbed: list[bytes]
) -> None:
    await cluster.known(2)
    listening = await crowd(cluster)
    replica = await on(cluster)
    with a_clock_that_leaves_out_stalls() as passed:
        replica.send(signal.SIGSTOP)
        listening.go_on()
        await cluster.known(1)
        assert passed[0] < WITHIN_S
        assert await listening.heard() == undisturbed
    replica.send(signal.SIGCONT)
    await cluster.known(2)
    await cluster.idle()


async def test_without_any_replica_a_stream_ends_with_an_error(
    cluster: TinyCluster, undisturbed: list[bytes]
) -> None:
    await cluster.known(2)
    listening = await crowd(cluster)
    with a_clock_that_leaves_out_stalls() as passed:
        for replica in cluster.replicas.values():
            replica.send(signal.SIGSTOP)
        listening.go_on()
        async with asyncio.timeout(60):
            ends = await asyncio.gather(*listening.tasks, return_exceptions=True)
        # They have sound to play, so the edge waits for a replica as long as for a place.
        assert passed[0] < MAX_WAIT_S + WITHIN_S
    assert [type(end) for end in ends] == [ReplicaLost] * SLOTS
    for replica in cluster.replicas.values():
        replica.send(signal.SIGCONT)
    await cluster.known(2)
    await cluster.idle()
    assert await spoken(cluster, join_text(0)) == undisturbed[0]


async def test_a_killed_replica_is_not_heard(
    cluster: TinyCluster, undisturbed: list[bytes]
) -> None:
    await cluster.known(2)
    listening = await crowd(cluster)
    replica = await on(cluster)
    assert replica.process is not None
    family = psutil.Process(replica.process.pid).children(recursive=True)
    with a_clock_that_leaves_out_stalls() as passed:
        replica.send(signal.SIGKILL)
        listening.go_on()
        await cluster.known(1)
        assert passed[0] < WITHIN_S / 4
        assert await listening.heard() == undisturbed
    await cluster.idle()
    assert not psutil.wait_procs(family, timeout=60)[1]


async def test_an_upgrade_that_starts_the_new_replica_first_rejects_nobody(
    cluster: TinyCluster, undisturbed: list[bytes]
) -> None:
    [old] = [cluster.replicas[r.address] for r in cluster.edge.get_replica_reports() if r.ready]
    [new] = [replica for replica in cluster.replicas.values() if replica is not old]
    rejected = dict(cluster.edge.get_model("tiny").admission.refused)
    hearing_old = await crowd(cluster)
    new.start()
    await cluster.known(2)
    old.send(signal.SIGTERM)
    await cluster.known(1)
    hearing_new = await crowd(cluster)
    assert cluster.streams() == {str(old.address): SLOTS, str(new.address): SLOTS}
    for listening in (hearing_old, hearing_new):
        listening.go_on()
        assert await listening.heard() == undisturbed
    assert cluster.edge.get_model("tiny").admission.refused == rejected
    assert old.process is not None
    assert await asyncio.to_thread(old.process.wait, 60) == 0


async def test_the_last_replica_drains_and_then_there_is_none(
    cluster: TinyCluster, undisturbed: list[bytes]
) -> None:
    """It ends what it speaks; after it, there is a typed error at once."""
    [left] = [report.address for report in cluster.edge.get_replica_reports() if report.ready]
    replica = cluster.replicas[left]
    listening = await crowd(cluster)
    replica.send(signal.SIGTERM)
    await cluster.known(0)
    assert cluster.streams()[left] == SLOTS
    with pytest.raises(StageDied):
        await spoken(cluster, TEXT)
    listening.go_on()
    assert await listening.heard() == undisturbed
    assert replica.process is not None
    assert await asyncio.to_thread(replica.process.wait, 60) == 0
