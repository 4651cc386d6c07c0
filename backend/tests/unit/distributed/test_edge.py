"""An edge over replicas: it speaks as they do, chooses among them, and frees what it leaves."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from dataclasses import replace

import pytest
from fake_cluster import (
    FakeCluster,
    collect_chunks,
    collect_sound,
    fake_cluster,
    spoken,
    undisturbed,
)
from fake_service import FakeModel, eventually
from live_server import until_still

from cantata.contract.data.errors import (
    ChunkTimeout,
    InvalidRequest,
    ModelNotFound,
    Overloaded,
    Quarantined,
    RequestFailed,
    StageDied,
    VoiceNotFound,
)
from cantata.contract.data.request import SpeechRequest
from cantata.distributed.edge import remote_work
from cantata.distributed.key import LinkKey

TEXT = "One two three four five."


async def test_an_edge_speaks_as_its_replicas_do() -> None:
    async with fake_cluster() as cluster:
        chunks = await collect_chunks(cluster, TEXT)
        assert collect_sound(chunks) == undisturbed(cluster, TEXT)
        words = [word for chunk in chunks for word in chunk.words]
        assert [TEXT[word.text_start : word.text_end] for word in words] == TEXT[:-1].split()
        assert [m.step for chunk in chunks for m in chunk.milestones] == ["talker"]
        local = cluster.replicas[0].solo
        remote = cluster.edge.get_model("solo")
        for name in ("voices", "sample_rate", "channels", "max_input_characters", "capabilities"):
            assert getattr(remote, name) == getattr(local, name)
        assert list(cluster.edge.models) == ["solo", "duo"]
        assert cluster.edge.get_model("tts-1") is remote


async def test_the_timeline_says_what_was_done_and_in_order() -> None:
    async with fake_cluster() as cluster:
        model = cluster.edge.get_model("solo")
        async with model.run(SpeechRequest(TEXT, "clara")) as utterance:
            steps = [milestone.step for milestone in utterance.milestones]
            times = [milestone.at_s for milestone in utterance.milestones]
        assert steps == ["route", "text", "admit"]
        assert times == sorted(times)


async def test_requests_are_spread_over_the_replicas() -> None:
    async with fake_cluster(3, capacity=4, may_sound=asyncio.Event()) as cluster:
        asking = [asyncio.create_task(spoken(cluster, f"{n} {TEXT}")) for n in range(9)]
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 9)
        assert [replica.solo.counts.open for replica in cluster.replicas] == [3, 3, 3]
        for replica in cluster.replicas:
            assert replica.host.status.models["solo"].free == 1
            assert replica.solo.behaviour.may_sound is not None
            replica.solo.behaviour.may_sound.set()
        assert await asyncio.gather(*asking) == [
            undisturbed(cluster, f"{n} {TEXT}") for n in range(9)
        ]


async def test_a_replica_never_gets_more_than_it_has_places_for() -> None:
    async with fake_cluster(2, capacity=2, interval_s=0.001) as cluster:
        heard = await asyncio.gather(*(spoken(cluster, f"{n} {TEXT}") for n in range(20)))
        assert heard == [undisturbed(cluster, f"{n} {TEXT}") for n in range(20)]
        assert [replica.solo.counts.max_open for replica in cluster.replicas] == [2, 2]


async def test_who_waits_too_long_is_told_when_to_come_again(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(remote_work, "MAX_WAIT_S", 0.05)
    async with fake_cluster(2, capacity=0) as cluster:
        with pytest.raises(Overloaded) as refusal:
            await spoken(cluster, TEXT)
        assert 0.75 <= refusal.value.retry_after_s <= 1.25
        assert cluster.edge.get_model("solo").admission.refused["waited_too_long"] == 1


async def test_a_full_queue_rejects_at_once(monkeypatch: pytest.MonkeyPatch) -> None:
    original = FakeModel.admission.fget  # type: ignore[attr-defined]
    assert original is not None
    few = property(lambda self: replace(original(self), slots=1, retry_after_s=4.0 + self.rate))
    monkeypatch.setattr(FakeModel, "admission", few)
    monkeypatch.setattr(FakeModel, "rate", 0.0, raising=False)
    async with fake_cluster(2, capacity=0) as cluster:
        cluster.replicas[1].solo.rate = 9.0  # type: ignore[attr-defined]
        model = cluster.edge.get_model("solo")
        waiting = [asyncio.create_task(spoken(cluster, TEXT)) for _ in range(2)]
        await eventually(lambda: model.admission.waiting == 2)
        with pytest.raises(Overloaded) as refusal:
            model.check_room()
        assert 3.0 <= refusal.value.retry_after_s <= 5.0
        for replica in cluster.replicas:
            replica.solo.behaviour.capacity = 1
        assert await asyncio.gather(*waiting) == [undisturbed(cluster, TEXT)] * 2
        model.check_room()


async def test_leaving_returns_once_the_replica_has_freed_it() -> None:
    async with fake_cluster(abort_s=0.05, interval_s=0.001) as cluster:
        model = cluster.edge.get_model("solo")
        async with model.run(SpeechRequest(TEXT, "clara")) as utterance:
            await anext(utterance)
            replica = cluster.speaking()
        assert (replica.solo.counts.open, replica.solo.counts.aborted) == (0, 1)


async def test_a_cancelled_listener_leaves_nothing_behind() -> None:
    async with fake_cluster(abort_s=0.05, may_sound=asyncio.Event()) as cluster:
        asking = asyncio.create_task(spoken(cluster, TEXT))
        await eventually(lambda: any(r.solo.counts.open for r in cluster.replicas))
        replica = cluster.speaking()
        asking.cancel()
        with pytest.raises(asyncio.CancelledError):
            await asking
        assert (replica.solo.counts.open, replica.solo.counts.aborted) == (0, 1)


async def test_a_listener_that_does_not_read_stops_the_replica() -> None:
    async with fake_cluster(1, chunks=10_000) as cluster:
        counts = cluster.replicas[0].solo.counts
        model = cluster.edge.get_model("solo")
        async with model.run(SpeechRequest(TEXT, "clara")) as utterance:
            await until_still(lambda: counts.chunks)
            assert 100 < counts.chunks < 200  # of 1,920 bytes, in a window of 256 KiB
            before, taken = counts.chunks, 0
            while taken < 100 * 480:
                taken += len((await anext(utterance)).samples)
            await until_still(lambda: counts.chunks)
            assert before < counts.chunks < before + 150


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("not this", "mood"),
        RequestFailed("the decoder could not"),
        ChunkTimeout("no output for 10 s"),
        StageDied("the talker ended"),
    ],
)
@pytest.mark.parametrize("after", [0, 3])
async def test_errors_arrive_as_they_are_and_do_not_travel(error: Exception, after: int) -> None:
    async with fake_cluster(fail_after=after, error=error) as cluster:
        with pytest.raises(type(error)) as arrived:
            await spoken(cluster, TEXT)
        assert type(arrived.value) is type(error)
        assert arrived.value.args == error.args
        assert sum(replica.solo.counts.started for replica in cluster.replicas) == 1
        for replica in cluster.replicas:
            replica.solo.behaviour.error = None
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_what_is_in_quarantine_stays_there() -> None:
    async with fake_cluster(fail_after=0, error=Quarantined("twice")) as cluster:
        for _ in range(3):
            with pytest.raises(Quarantined, match="twice"):
                await spoken(cluster, TEXT)
        assert sum(replica.solo.counts.started for replica in cluster.replicas) == 1
        for replica in cluster.replicas:
            replica.solo.behaviour.error = None
        assert await spoken(cluster, "Another text.") == undisturbed(cluster, "Another text.")


async def test_an_unforeseen_fault_shows_no_details_and_ends_nothing_else() -> None:
    async with fake_cluster(1, fail_after=2, error=ZeroDivisionError("secret")) as cluster:
        with pytest.raises(RequestFailed) as arrived:
            await spoken(cluster, TEXT)
        assert "secret" not in str(arrived.value)
        cluster.replicas[0].solo.behaviour.error = None
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)


async def test_names_are_checked_here() -> None:
    async with fake_cluster() as cluster:
        with pytest.raises(VoiceNotFound):
            cluster.edge.get_model("solo").get_voice("nobody")
        with pytest.raises(ModelNotFound):
            cluster.edge.get_model("nothing")
        with pytest.raises(ModelNotFound):
            cluster.edge.get_chat_model("nothing")


async def test_file_renders_are_taken_without_a_free_place() -> None:
    async with fake_cluster(2) as cluster:
        assert await spoken(cluster, TEXT, batch=True) == undisturbed(cluster, TEXT)
        assert sum(replica.solo.counts.batch for replica in cluster.replicas) == 1


async def pieces(*texts: str) -> AsyncIterator[str]:
    for text in texts:
        await asyncio.sleep(0)
        yield text


async def test_text_that_is_still_arriving_is_passed_on() -> None:
    async with fake_cluster() as cluster:
        heard = await spoken(cluster, "", more_text=pieces(" ", "One. ", "Two. ", "Three."))
        assert heard == undisturbed(cluster, " One. Two. Three.")


async def test_nothing_is_ordered_before_the_first_words(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cantata.distributed.edge.replayable_input.FIRST_TEXT_S", 0.05)

    async def silence() -> AsyncIterator[str]:
        await asyncio.Event().wait()
        yield ""

    async with fake_cluster() as cluster:
        with pytest.raises(ChunkTimeout, match="no text"):
            await spoken(cluster, "", more_text=silence())
        assert sum(replica.solo.counts.asked for replica in cluster.replicas) == 0


async def test_stages_and_replicas_are_reported() -> None:
    async with fake_cluster() as cluster:
        reports = await cluster.edge.collect_stage_reports()
        addresses = {str(replica.host.address) for replica in cluster.replicas}
        assert {report.replica for report in reports} == addresses
        assert len(reports) == 8
        assert {report.address for report in cluster.edge.get_replica_reports()} == addresses
        admission = cluster.edge.get_model("solo").admission
        assert (admission.places, admission.slots) == (2000, 2000)


async def test_another_key_is_no_replica() -> None:
    async with fake_cluster(1) as cluster:
        key = LinkKey(bytes(32))
        edge = type(cluster.edge)(cluster.directory, key)
        stranger = FakeCluster(edge, cluster.directory, key)
        starting = asyncio.create_task(stranger.edge.start())
        await eventually(
            lambda: any(
                "same key" in (report.trouble or "")
                for report in stranger.edge.get_replica_reports()
            )
        )
        assert not starting.done()
        starting.cancel()
        await asyncio.wait([starting])
        await stranger.edge.stop()
        assert await spoken(cluster, TEXT) == undisturbed(cluster, TEXT)
