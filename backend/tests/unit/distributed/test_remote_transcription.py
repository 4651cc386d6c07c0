"""A model that turns speech into text, over replicas: the same words, through a loss as well."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator, AsyncIterator
from contextlib import AbstractAsyncContextManager, AsyncExitStack, asynccontextmanager

import numpy as np
import pytest
from fake_cluster import FakeCluster, Replica, fake_cluster
from fake_service import FakeService, eventually
from fake_transcription import FakeRecognition, FakeTranscriptionModel, expected_transcript
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.errors import (
    CantataError,
    ChunkTimeout,
    InvalidRequest,
    Overloaded,
    ReplicaLost,
    RequestFailed,
    StageDied,
)
from cantata.contract.data.transcripts import (
    SPEECH_RATE,
    TokenLogprob,
    TranscribedWord,
    Transcript,
    TranscriptionRequest,
)
from cantata.contract.model.recognizer import Sound
from cantata.contract.transcription_service import Recognition
from cantata.distributed.messages import WindowTranscript
from cantata.distributed.serialization import decode, encode

ASKED = TranscriptionRequest("de", "Cantata, Hibari", True, 0.5, timestamps=True)
FILE = TranscriptionRequest(batch=True)


def sound(seconds: float, seed: int = 0) -> Sound:
    noise = np.random.default_rng(seed).normal(0, 0.1, round(seconds * SPEECH_RATE))
    return noise.astype(np.float32)


def ears(replica: Replica) -> FakeTranscriptionModel:
    return replica.service.ears


def listening(cluster: FakeCluster) -> Replica:
    """The one that has a window."""
    [replica] = [replica for replica in cluster.replicas if ears(replica).counts.open]
    return replica


async def lose(replica: Replica) -> None:
    """As if its process were killed."""
    for session in list(replica.host._sessions):
        session.link.close()
    await replica.host.stop()


def recognize(
    cluster: FakeCluster, request: TranscriptionRequest = ASKED
) -> AbstractAsyncContextManager[Recognition]:
    return cluster.edge.get_transcription_model(None).run(request)


async def transcribed(
    cluster: FakeCluster, samples: Sound, request: TranscriptionRequest = ASKED
) -> Transcript:
    async with recognize(cluster, request) as window:
        await window.feed(samples)
        return await window.finish()


@pytest.fixture
async def cluster() -> AsyncIterator[FakeCluster]:
    async with fake_cluster(2) as cluster:
        yield cluster
        assert all(ears(replica).counts.open == 0 for replica in cluster.replicas)


async def test_the_words_and_all_that_was_asked_arrive(cluster: FakeCluster) -> None:
    pieces = [sound(0.3, 1), sound(0.0), sound(1.2, 2)]
    async with recognize(cluster) as window:
        assert window.request_id.startswith("hear-")
        for piece in pieces:
            await window.feed(piece)
        transcript = await window.finish()
    assert transcript == expected_transcript(1.5, ASKED)
    assert [word.tokens for word in transcript.words] == [(0,), (1,), (2,)]
    [counts] = [ears(one).counts for one in cluster.replicas if ears(one).counts.requests]
    assert counts.requests == [ASKED]
    np.testing.assert_array_equal(counts.sounds[0], np.concatenate(pieces))


async def test_clients_are_told_what_the_model_can_do(cluster: FakeCluster) -> None:
    model = cluster.edge.get_transcription_model("whisper-1")
    alone = FakeService().ears
    for name in (
        "name",
        "languages",
        "translates",
        "has_timestamps",
        "has_partials",
        "max_window_s",
    ):
        assert getattr(model, name) == getattr(alone, name)
    assert model.admission.places == 2 * alone.admission.places
    assert list(cluster.edge.transcription_models) == ["ears"]


async def test_a_spare_model_finds_the_words_until_one_is_named() -> None:
    """And does not come back while that one is away."""
    async with fake_cluster(1, spare=("ears",)) as cluster:
        [spare] = cluster.replicas
        await transcribed(cluster, sound(0.5))
        assert ears(spare).counts.finished == 1

        service = FakeService()
        service.ears.languages = ("fr",)
        named = await cluster.add(service=service)
        cluster.report_state()
        await cluster.known(2)
        for _ in range(4):
            await transcribed(cluster, sound(0.5))
        assert (ears(spare).counts.finished, ears(named).counts.finished) == (1, 4)
        assert cluster.edge.get_transcription_model(None).languages == ("fr",)

        await lose(named)
        await cluster.known(1)
        await cluster.add(spare=("ears",))
        cluster.report_state()
        await cluster.known(2)
        with pytest.raises(CantataError):
            await transcribed(cluster, sound(0.5))
        assert ears(spare).counts.finished == 1
        assert cluster.edge.get_transcription_model(None).languages == ("fr",)


@pytest.mark.parametrize("seconds", [0.0, 30.0])
async def test_a_window_may_be_empty_or_the_longest(cluster: FakeCluster, seconds: float) -> None:
    """The longest is seven times what a link takes without being read."""
    samples = sound(seconds)
    assert await transcribed(cluster, samples) == expected_transcript(seconds, ASKED)
    [counts] = [ears(one).counts for one in cluster.replicas if ears(one).counts.requests]
    np.testing.assert_array_equal(counts.sounds[0], samples)


async def test_a_longer_window_is_refused_before_it_is_sent(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        await window.feed(sound(29.0))
        with pytest.raises(InvalidRequest, match=r"31\.0 s of sound; valid: up to 30 s"):
            await window.feed(sound(2.0))


async def test_what_was_said_so_far_arrives_while_the_window_does(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        partials = window.partials()
        for count in (1, 2, 3):
            await window.feed(sound(1.0), recognize=True)
            assert await anext(partials) == expected_transcript(count, ASKED)
        assert await window.finish() == expected_transcript(3.0, ASKED)
        assert [one async for one in partials] == []
        assert [one async for one in window.partials()] == []


async def test_who_reads_slowly_finds_the_latest(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        for _ in range(4):
            await window.feed(sound(0.5), recognize=True)
        latest = expected_transcript(2.0, ASKED)
        await eventually(lambda: window._partial == latest)  # type: ignore[attr-defined]
        assert await anext(window.partials()) == latest


@pytest.mark.parametrize(
    "error",
    [
        InvalidRequest("not this", "language"),
        RequestFailed("the speech could not be recognized"),
        ChunkTimeout("no transcript within 600 s"),
        StageDied("the recognizer ended"),
    ],
)
async def test_errors_arrive_as_they_are(cluster: FakeCluster, error: CantataError) -> None:
    for replica in cluster.replicas:
        ears(replica).behaviour.error = error
    with pytest.raises(type(error)) as arrived:
        await transcribed(cluster, sound(1.0))
    assert type(arrived.value) is type(error)
    assert arrived.value.args == error.args
    assert sum(len(ears(replica).counts.requests) for replica in cluster.replicas) == 1
    for replica in cluster.replicas:
        ears(replica).behaviour.error = None
    assert await transcribed(cluster, sound(1.0)) == expected_transcript(1.0, ASKED)


class FailingEarly(FakeTranscriptionModel):
    """Finds out while the window arrives that it cannot be recognized."""

    @asynccontextmanager
    async def run(self, request: TranscriptionRequest) -> AsyncIterator[FakeRecognition]:
        async with super().run(request) as window:
            window.partials = self._fail  # type: ignore[method-assign]
            yield window

    async def _fail(self) -> AsyncGenerator[Transcript, None]:
        await asyncio.sleep(0)
        raise RequestFailed("no words")
        yield


async def test_who_still_feeds_hears_of_a_failure_at_once() -> None:
    service = FakeService()
    service.ears = FailingEarly("ears")
    service.transcription_models = {"ears": service.ears}
    async with fake_cluster(1) as cluster:
        await cluster.replicas[0].host.stop()
        cluster.replicas = [await cluster.add(service=service)]
        cluster.report_state()
        await cluster.known(1)
        async with recognize(cluster) as window:
            with pytest.raises(RequestFailed, match="no words"):
                await anext(window.partials())
            with pytest.raises(RequestFailed, match="no words"):
                await window.feed(sound(1.0))
            await eventually(lambda: service.ears.counts.open == 0)
            with pytest.raises(RequestFailed, match="no words"):
                await window.finish()


async def test_leaving_frees_the_window(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        await window.feed(sound(1.0), recognize=True)
        replica = listening(cluster)
        await eventually(lambda: replica.host.status.models["ears"].in_use == 1)
    assert ears(replica).counts.open == 0
    assert ears(replica).counts.finished == 0
    await eventually(lambda: replica.host.status.models["ears"].in_use == 0)


async def test_a_cancelled_listener_leaves_nothing_behind(cluster: FakeCluster) -> None:
    for replica in cluster.replicas:
        ears(replica).behaviour.may_finish = asyncio.Event()
    asking = asyncio.create_task(transcribed(cluster, sound(1.0)))
    await eventually(lambda: any(ears(one).counts.open for one in cluster.replicas))
    replica = listening(cluster)
    asking.cancel()
    with pytest.raises(asyncio.CancelledError):
        await asking
    assert ears(replica).counts.open == 0


@pytest.mark.parametrize("is_finishing", [False, True])
@pytest.mark.parametrize("identity", ["the same", "another"])
async def test_a_lost_replica_is_not_noticed(identity: str, is_finishing: bool) -> None:
    """All of the sound goes to the other one, whatever its files."""
    async with fake_cluster(1) as cluster:
        first = cluster.replicas[0]
        ears(first).behaviour.may_finish = asyncio.Event()
        async with recognize(cluster) as window:
            partials = window.partials()
            await window.feed(sound(9.0, 1))
            await window.feed(sound(0.5, 2), recognize=True)
            assert (await anext(partials)).seconds == 9.5
            second = await cluster.add(identity=identity)
            cluster.report_state()
            await cluster.known(2)
            if is_finishing:
                finishing = asyncio.create_task(window.finish())
                await lose(first)
                transcript, seconds = await finishing, 9.5
            else:
                await lose(first)
                assert (await anext(partials)).seconds == 9.5
                await window.feed(sound(1.0, 3))
                transcript, seconds = await window.finish(), 10.5
            assert transcript == expected_transcript(seconds, ASKED)
        heard = np.concatenate([sound(9.0, 1), sound(0.5, 2), sound(1.0, 3)])
        [arrived] = ears(second).counts.sounds
        np.testing.assert_array_equal(arrived, heard[: round(seconds * SPEECH_RATE)])


async def test_without_another_replica_there_is_an_error() -> None:
    async with fake_cluster(1) as cluster, recognize(cluster) as window:
        await window.feed(sound(1.0))
        await lose(cluster.replicas[0])
        with pytest.raises(ReplicaLost):
            await window.finish()
        with pytest.raises(ReplicaLost):
            await window.feed(sound(1.0))
        with pytest.raises(ReplicaLost):
            await anext(window.partials())
        with pytest.raises(StageDied, match="no replica serves"):
            async with recognize(cluster):
                pass
        assert "ears" in cluster.edge.trouble


async def test_a_lost_edge_frees_its_windows(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        await window.feed(sound(1.0))
        replica = listening(cluster)
        await cluster.edge.stop()
        with pytest.raises(ReplicaLost):
            await window.finish()
    await eventually(lambda: ears(replica).counts.open == 0)


async def test_a_full_replica_is_passed_over(cluster: FakeCluster) -> None:
    first, second = map(ears, cluster.replicas)
    first.behaviour.full = True
    for _ in range(4):
        await transcribed(cluster, sound(0.5))
    assert (len(first.counts.requests), len(second.counts.requests)) == (0, 4)
    second.behaviour.full = True
    with pytest.raises(Overloaded, match="every slot is taken") as refused:
        await transcribed(cluster, sound(0.5))
    assert refused.value.retry_after_s == 2.0


async def test_speakers_find_no_room_where_every_place_is_taken(
    cluster: FakeCluster,
) -> None:
    """They do not wait; files do, at the replicas."""
    model = cluster.edge.get_transcription_model(None)
    places = model.admission.places
    async with AsyncExitStack() as stack:
        for _ in range(places):
            model.check_room()
            await stack.enter_async_context(recognize(cluster))
        with pytest.raises(Overloaded, match="no replica has a free place"):
            model.check_room()
        assert model.admission.refused["queue_full"] == 1
        assert [ears(one).counts.open for one in cluster.replicas] == [places // 2] * 2
        assert (await transcribed(cluster, sound(0.5), FILE)).seconds == 0.5


async def test_windows_of_files_take_places_once_they_are_open(cluster: FakeCluster) -> None:
    """So speakers go where fewer are."""
    first, second = cluster.replicas
    ears(second).behaviour.full = True
    async with recognize(cluster, FILE) as window, AsyncExitStack() as stack:
        ears(second).behaviour.full = False
        await eventually(lambda: first.host.status.models["ears"].free == 7)
        await eventually(
            lambda: sorted(p.free("ears") for p in cluster.edge._replicas.peers) == [7, 8]
        )
        await stack.enter_async_context(recognize(cluster))
        assert (ears(first).counts.open, ears(second).counts.open) == (1, 1)
        await window.finish()
    await eventually(lambda: first.host.status.models["ears"].free == 8)


async def test_a_replica_that_drains_finishes_its_windows(cluster: FakeCluster) -> None:
    async with recognize(cluster) as window:
        await window.feed(sound(1.0))
        leaving = listening(cluster)
        [staying] = [one for one in cluster.replicas if one is not leaving]
        draining = asyncio.create_task(leaving.host.drain(30))
        await eventually(lambda: any(one.draining for one in cluster.edge.get_replica_reports()))
        await transcribed(cluster, sound(0.5))
        assert len(ears(staying).counts.requests) == 1
        assert await window.finish() == expected_transcript(1.0, ASKED)
    assert await draining


numbers = st.floats(allow_nan=False)
words = st.builds(
    TranscribedWord,
    st.text(),
    numbers,
    numbers,
    numbers,
    st.lists(st.integers(0, 60_000)).map(tuple),
)
logprobs = st.builds(TokenLogprob, st.text(), st.binary().map(tuple), numbers)
transcripts = st.builds(
    Transcript,
    st.text(),
    st.text(),
    st.lists(words).map(tuple),
    st.lists(logprobs).map(tuple),
    st.none() | numbers,
    st.none() | numbers,
    numbers,
    numbers,
)


@given(transcripts, st.booleans())
def test_a_transcript_crosses_a_link_whole(transcript: Transcript, final: bool) -> None:
    message = WindowTranscript(transcript, final)
    body = bytearray(b"".join(bytes(part) for part in encode(message)))
    assert decode(body, WindowTranscript) == message
