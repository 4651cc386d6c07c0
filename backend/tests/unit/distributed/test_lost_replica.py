"""A replica is lost: its listeners hear every sample once, from another one, or a typed error."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager

import pytest
from fake_cluster import KEY, FakeCluster, Replica, collect_sound, fake_cluster, spoken, undisturbed
from fake_service import FakeService, eventually

from cantata.contract.data.errors import Overloaded, Quarantined, ReplicaLost, StageDied
from cantata.contract.data.request import SpeechRequest, Voice
from cantata.contract.service import SpeechChunk, Utterance
from cantata.distributed.address import Address
from cantata.distributed.edge import remote_work
from cantata.distributed.edge.service import RemoteService
from cantata.distributed.messages import MoreText

TEXT = "One two three four five six seven eight nine ten."
LOST_AFTER = 12
"""Chunks that are heard before it."""
BEGUN = "One two three four."


async def begun(may_go_on: asyncio.Event) -> AsyncIterator[str]:
    """A text of which the end is still to come."""
    yield "One two "
    yield "three "
    await may_go_on.wait()
    yield "four."


async def lose(replica: Replica) -> None:
    """As if its process were killed: the connections end, nothing is said."""
    for session in list(replica.host._sessions):
        session.link.close()
    await replica.host.stop()


async def told_to_stop(replica: Replica) -> None:
    """As by a second SIGTERM: what it speaks is cut off."""
    await replica.host.stop()


async def heard_through_a_loss(
    cluster: FakeCluster,
    losses: int = 1,
    more_text: AsyncIterator[str] | None = None,
    end: Callable[[Replica], Awaitable[None]] = lose,
) -> list[SpeechChunk]:
    """What a listener gets while the replica that speaks is lost, so many times."""
    model, chunks = cluster.edge.get_model("solo"), list[SpeechChunk]()
    request = SpeechRequest("" if more_text else TEXT, "clara")
    async with model.run(request, more_text=more_text) as utterance:
        async for chunk in utterance:
            chunks.append(chunk)
            if losses and len(chunks) % LOST_AFTER == 0:
                losses -= 1
                await end(cluster.speaking())
    return chunks


async def test_a_lost_replica_is_not_heard() -> None:
    async with fake_cluster(2, interval_s=0.002) as cluster:
        chunks = await heard_through_a_loss(cluster)
        assert collect_sound(chunks) == undisturbed(cluster, TEXT)
        words = [word for chunk in chunks for word in chunk.words]
        assert [TEXT[word.text_start : word.text_end] for word in words] == TEXT[:-1].split()
        assert [replica.solo.counts.started for replica in cluster.replicas] == [1, 1]
        assert max(report.lost for report in cluster.edge.get_replica_reports()) == 1


async def test_other_listeners_notice_nothing() -> None:
    async with fake_cluster(3, interval_s=0.002) as cluster:
        others = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(6)]
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 6)
        await lose(cluster.replicas[1])
        assert await asyncio.gather(*others) == [
            undisturbed(cluster, f"{n} {TEXT}") for n in range(6)
        ]
        started = [replica.solo.counts.started for replica in cluster.replicas]
        assert sum(started) == 6 + 2


async def all_at_once() -> AsyncIterator[str]:
    yield TEXT


async def test_it_is_spoken_again_once_only() -> None:
    async with fake_cluster(3, interval_s=0.002) as cluster:
        with pytest.raises(ReplicaLost, match="second"):
            await heard_through_a_loss(cluster, losses=2, more_text=all_at_once())
        assert sorted(replica.solo.counts.started for replica in cluster.replicas) == [0, 1, 1]
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_who_was_alone_on_two_lost_replicas_gets_no_third() -> None:
    async with fake_cluster(3, interval_s=0.002) as cluster:
        with pytest.raises(Quarantined, match="replica"):
            await heard_through_a_loss(cluster, losses=2)
        with pytest.raises(Quarantined, match="replica"):
            await spoken(cluster, TEXT)
        assert sorted(replica.solo.counts.started for replica in cluster.replicas) == [0, 1, 1]
        assert cluster.edge.get_model("solo").admission.quarantined == 1
        assert await spoken(cluster, f"{TEXT} ") == undisturbed(cluster, f"{TEXT} ")


async def test_who_got_further_in_between_is_no_suspect() -> None:
    async with fake_cluster(3, interval_s=0.002, chunk_samples=4_800) as cluster:
        with pytest.raises(ReplicaLost, match="second"):
            await heard_through_a_loss(cluster, losses=2)
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_who_completes_in_between_is_no_suspect() -> None:
    """Too short to get any further."""
    async with fake_cluster(4, interval_s=0.002, chunk_samples=48) as cluster:
        for _ in range(3):
            assert collect_sound(await heard_through_a_loss(cluster)) == undisturbed(cluster, TEXT)


async def test_replicas_that_are_told_to_stop_are_nobodys_fault() -> None:
    async with fake_cluster(3, interval_s=0.002) as cluster:
        with pytest.raises(ReplicaLost, match="second"):
            await heard_through_a_loss(cluster, losses=2, end=told_to_stop)
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_without_another_replica_there_is_an_error() -> None:
    async with fake_cluster(1, interval_s=0.002) as cluster:
        with pytest.raises(ReplicaLost) as lost:
            await heard_through_a_loss(cluster)
        assert isinstance(lost.value, StageDied)
        assert lost.value.code == "replica_lost"
        with pytest.raises(StageDied, match="no replica serves"):
            await spoken(cluster, TEXT)


async def test_a_listener_waits_for_a_place_on_another_replica(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_work, "AGAIN_S", 0.0)
    async with fake_cluster(2, capacity=1, interval_s=0.002) as cluster:
        speaking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(2)]
        await eventually(lambda: all(replica.solo.counts.chunks for replica in cluster.replicas))
        await lose(cluster.replicas[0])
        expected = [undisturbed(cluster, f"{n} {TEXT}") for n in range(2)]
        assert await asyncio.gather(*speaking) == expected
        assert cluster.replicas[1].solo.counts.max_open == 1


async def test_a_listener_waits_as_long_as_there_is_sound_to_play(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """No replica is left when one is lost; another comes while the listener still plays."""
    monkeypatch.setattr(remote_work, "AGAIN_S", 0.0)
    async with fake_cluster(1, interval_s=0.002) as cluster:
        speaking = asyncio.create_task(heard_through_a_loss(cluster))
        await eventually(lambda: cluster.edge.get_replica_reports()[0].lost == 1)
        await cluster.add()
        cluster.report_state()
        assert collect_sound(await speaking) == undisturbed(cluster, TEXT)


async def test_a_replica_of_other_files_does_not_take_over(
    caplog: pytest.LogCaptureFixture,
) -> None:
    async with fake_cluster(1, interval_s=0.002) as cluster:
        await cluster.add(identity="another", capacity=999)
        cluster.report_state()
        await cluster.known(2)
        assert "has other files, another deployment or other packages" in caplog.text
        with pytest.raises(ReplicaLost):
            await heard_through_a_loss(cluster)
        assert [replica.solo.counts.started for replica in cluster.replicas] == [1, 0]


async def test_before_the_first_sample_any_replica_takes_over() -> None:
    async with fake_cluster(1, may_sound=asyncio.Event()) as cluster:
        await cluster.add(identity="another", capacity=999)
        cluster.report_state()
        await cluster.known(2)
        asking = asyncio.create_task(spoken(cluster, TEXT))
        await eventually(lambda: cluster.replicas[0].solo.counts.open == 1)
        await lose(cluster.replicas[0])
        assert await asking == undisturbed(cluster, TEXT)


async def test_a_replica_that_says_something_else_is_no_replacement() -> None:
    async with fake_cluster(1, interval_s=0.002) as cluster:
        await cluster.add(chunks=LOST_AFTER // 2, capacity=999)
        cluster.report_state()
        await cluster.known(2)
        with pytest.raises(ReplicaLost, match="shorter"):
            await heard_through_a_loss(cluster)


async def test_text_that_had_arrived_is_spoken_again() -> None:
    may_go_on = asyncio.Event()
    async with fake_cluster(2) as cluster:
        # The fake model opens once the whole text is there.
        asking = asyncio.create_task(spoken(cluster, "", more_text=begun(may_go_on)))
        await eventually(lambda: sum(r.solo.counts.asked for r in cluster.replicas) == 1)
        [first] = [replica for replica in cluster.replicas if replica.solo.counts.asked]
        await lose(first)
        await eventually(lambda: sum(r.solo.counts.asked for r in cluster.replicas) == 2)
        may_go_on.set()
        assert await asking == undisturbed(cluster, BEGUN)


async def test_a_request_that_is_just_being_opened_goes_to_another_replica() -> None:
    """Although the lost one told of more places than the others have."""
    may_go_on = asyncio.Event()
    async with fake_cluster(1) as cluster:
        [first] = cluster.replicas
        second = await cluster.add(capacity=4)
        cluster.report_state()
        await cluster.known(2)
        # The fake model opens once the whole text is there.
        asking = [
            asyncio.create_task(spoken(cluster, "", more_text=begun(may_go_on)))
            for _ in range(second.solo.behaviour.capacity)
        ]
        await eventually(lambda: first.solo.counts.asked == len(asking))
        await lose(first)
        await eventually(lambda: second.solo.counts.asked == len(asking))
        may_go_on.set()
        expected = undisturbed(cluster, BEGUN)
        assert await asyncio.gather(*asking) == [expected] * len(asking)


async def test_a_request_that_is_just_being_opened_waits_for_a_place_elsewhere() -> None:
    may_go_on, may_sound = asyncio.Event(), asyncio.Event()
    async with fake_cluster(2, capacity=1, may_sound=may_sound) as cluster:
        other = asyncio.create_task(spoken(cluster, TEXT))
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 1)
        asking = asyncio.create_task(spoken(cluster, "", more_text=begun(may_go_on)))
        await eventually(lambda: all(replica.solo.counts.asked for replica in cluster.replicas))
        [opening] = [replica for replica in cluster.replicas if not replica.solo.counts.open]
        await lose(opening)
        await eventually(lambda: cluster.edge.waiting["solo"] == 1)
        may_sound.set()
        may_go_on.set()
        assert await other == undisturbed(cluster, TEXT)
        assert await asking == undisturbed(cluster, BEGUN)


async def test_who_cannot_go_back_to_a_replica_holds_up_nobody_who_can() -> None:
    may_go_on, may_sound = asyncio.Event(), asyncio.Event()
    async with fake_cluster(2, capacity=1) as cluster:
        asking = asyncio.create_task(spoken(cluster, "", more_text=begun(may_go_on)))
        await eventually(
            lambda: sum(replica.solo.counts.asked for replica in cluster.replicas) == 1
        )
        [lost] = [replica for replica in cluster.replicas if replica.solo.counts.asked]
        [busy] = [replica for replica in cluster.replicas if replica is not lost]
        busy.solo.behaviour.may_sound = may_sound
        other = asyncio.create_task(spoken(cluster, TEXT))
        await eventually(lambda: busy.solo.counts.open == 1)
        for session in list(lost.host._sessions):
            session.link.close()
        await eventually(lambda: cluster.edge.waiting["solo"] == 1)
        await cluster.known(2)
        assert await spoken(cluster, f"Another: {TEXT}") == undisturbed(cluster, f"Another: {TEXT}")
        assert not asking.done()
        may_sound.set()
        may_go_on.set()
        assert await other == undisturbed(cluster, TEXT)
        assert await asking == undisturbed(cluster, BEGUN)


async def test_a_request_is_no_suspect_at_a_replica_that_refused_it(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    async with fake_cluster(1, capacity=1) as cluster:
        [first] = cluster.replicas
        refused = asyncio.Event()

        @asynccontextmanager
        async def run(*_: object, **options: object) -> AsyncIterator[Utterance]:
            first.solo.behaviour.capacity = 0
            refused.set()
            raise Overloaded("no place is left", 1.0)
            yield

        monkeypatch.setattr(first.solo, "run", run)
        asking = asyncio.create_task(spoken(cluster, TEXT))
        await refused.wait()
        await eventually(lambda: cluster.edge.waiting["solo"] == 1)
        await lose(first)
        second = await cluster.add(capacity=1, may_sound=asyncio.Event())
        cluster.report_state()
        await eventually(lambda: second.solo.counts.open == 1)
        await lose(second)
        with pytest.raises(ReplicaLost):
            await asking


async def test_an_edge_connects_again() -> None:
    async with fake_cluster(1) as cluster:
        [replica] = cluster.replicas
        for session in list(replica.host._sessions):
            session.link.close()
        await eventually(lambda: cluster.edge.get_replica_reports()[0].lost == 1)
        await cluster.known(1)
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_a_replica_that_cannot_be_understood_is_not_asked_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """Such as one of another release: each attempt would be a line in both logs."""
    monkeypatch.setattr("cantata.distributed.link.connecting._PAUSES_S", (0.0,))
    async with fake_cluster(1) as cluster:
        with monkeypatch.context() as patched:
            other = "cantata.distributed.replica.host.build_advertisement"
            patched.setattr(other, lambda *given: MoreText("of another release"))
            stranger = await cluster.add()
            cluster.report_state()
            await eventually(lambda: any(one.lost for one in cluster.edge.get_replica_reports()))
            for number in range(20):
                text = f"{number} {TEXT}"
                assert await spoken(cluster, text) == undisturbed(cluster, text)
        [report] = [
            one
            for one in cluster.edge.get_replica_reports()
            if one.address == str(stranger.host.address)
        ]
        assert (report.lost, report.ready) == (1, False)
        assert "no Advertisement" in str(report.trouble)


async def test_a_lost_edge_frees_what_it_ordered() -> None:
    async with fake_cluster(1, interval_s=0.002, abort_s=0.01) as cluster:
        [replica] = cluster.replicas
        model = cluster.edge.get_model("solo")
        async with model.run(SpeechRequest(TEXT, "clara")) as utterance:
            await anext(utterance)
            await cluster.edge.stop()
            with pytest.raises(ReplicaLost):
                collect_sound([chunk async for chunk in utterance])
        await eventually(lambda: replica.solo.counts.open == 0)
        assert replica.host.status.models["solo"].in_use == 0


class TestDrain:
    """A replica that is told to stop."""

    async def test_no_stream_is_cut_and_nothing_new_is_sent(self) -> None:
        async with fake_cluster(2, interval_s=0.005) as cluster:
            asking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(4)]
            await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 4)
            leaving, staying = cluster.replicas
            draining = asyncio.create_task(leaving.host.drain(30))
            await eventually(lambda: any(r.draining for r in cluster.edge.get_replica_reports()))
            asking += [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(4, 8)]
            assert await draining
            assert leaving.host.status.draining
            await leaving.host.stop()
            assert await asyncio.gather(*asking) == [
                undisturbed(cluster, f"{n} {TEXT}") for n in range(8)
            ]
            assert [leaving.solo.counts.started, staying.solo.counts.started] == [2, 6]

    async def test_what_is_cut_off_is_spoken_on_elsewhere(self) -> None:
        async with fake_cluster(2, interval_s=0.002) as cluster:
            asking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(4)]
            await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 4)
            await eventually(lambda: cluster.replicas[0].solo.counts.chunks > 10)
            await cluster.replicas[0].host.stop()
            assert await asyncio.gather(*asking) == [
                undisturbed(cluster, f"{n} {TEXT}") for n in range(4)
            ]

    async def test_what_does_not_end_in_time_is_said(self) -> None:
        async with fake_cluster(1, may_sound=asyncio.Event()) as cluster:
            asking = asyncio.create_task(spoken(cluster, TEXT))
            await eventually(lambda: cluster.replicas[0].solo.counts.open == 1)
            assert not await cluster.replicas[0].host.drain(0.05)
            asking.cancel()
            await asyncio.wait([asking])

    async def test_a_replica_that_leaves_the_directory_ends_what_it_speaks(self) -> None:
        async with fake_cluster(2, interval_s=0.002) as cluster:
            asking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(2)]
            await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 2)
            leaving, staying = cluster.replicas
            cluster.directory.change({staying.host.address})
            asking += [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(2, 6)]
            assert await asyncio.gather(*asking) == [
                undisturbed(cluster, f"{n} {TEXT}") for n in range(6)
            ]
            assert leaving.solo.counts.started == 1
            await eventually(lambda: len(cluster.edge.get_replica_reports()) == 1)
            await eventually(lambda: not leaving.host._sessions)


async def test_a_replica_may_leave_the_directory_and_come_back() -> None:
    async with fake_cluster(2, may_sound=asyncio.Event()) as cluster:
        asking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(2)]
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 2)
        first, second = cluster.replicas
        cluster.directory.change({second.host.address})
        await eventually(lambda: cluster.edge.get_model("solo").admission.places == 2000)
        cluster.report_state()
        asking += [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(2, 4)]
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 4)
        assert [r.solo.counts.open for r in cluster.replicas] == [2, 2]
        for replica in (first, second):
            assert replica.solo.behaviour.may_sound is not None
            replica.solo.behaviour.may_sound.set()
        await asyncio.gather(*asking)


async def test_an_upgrade_changes_what_clients_are_told() -> None:
    async with fake_cluster(1) as cluster:
        await cluster.known(1)
        other = FakeService()
        other.solo.voices = (Voice("nora", "Nora"),)
        other.solo.sample_rate = 16_000
        newer = await cluster.add(service=other)
        cluster.report_state()
        await cluster.known(2)
        model = cluster.edge.get_model("solo")
        assert model.get_voice(None).id == "clara"
        for _ in range(4):
            assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)
        assert newer.solo.counts.started == 0
        assert "format" in str([report.trouble for report in cluster.edge.get_replica_reports()])
        await cluster.replicas[0].host.stop()
        await eventually(lambda: model.get_voice(None).id == "nora")
        assert model.sample_rate == 16_000
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)
        assert newer.solo.counts.started == 1


async def test_a_directory_that_fails_is_asked_again(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.edge.replicas._ASK_S", 0.01)
    async with fake_cluster(1) as cluster:
        known, watch = cluster.directory, cluster.directory.watch
        answers = [OSError("the store is gone"), None]

        async def watch_badly() -> AsyncIterator[frozenset[Address]]:
            if error := answers.pop(0):
                raise error
            async for addresses in watch():
                yield addresses

        monkeypatch.setattr(known, "watch", watch_badly)
        other = RemoteService(known, KEY)
        await other.start()
        assert other.ready
        await other.stop()
