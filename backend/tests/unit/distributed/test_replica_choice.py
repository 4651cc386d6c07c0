"""Which replica gets a request: the freest, or the one that knows its recording."""

from __future__ import annotations

import asyncio
from collections import Counter

import numpy as np
import pytest
from fake_cluster import FakeCluster, Replica, collect_sound, fake_cluster, undisturbed
from fake_service import eventually
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.request import ReferenceAudio, SpeechRequest
from cantata.distributed.edge.replicas import (
    choose_by_affinity,
    choose_least_loaded,
    hash_recording,
)

RECORDINGS = 1_000
places = st.dictionaries(st.text(min_size=1, max_size=8), st.integers(-2, 9), max_size=6)


def recording(number: int, seconds: float = 3.0) -> ReferenceAudio:
    samples = np.random.default_rng(number).random((round(seconds * 24_000), 1), np.float32)
    return ReferenceAudio(samples, 24_000)


def home(number: int) -> bytes:
    return number.to_bytes(16, "big")


@given(places, st.integers(0, 99))
def test_a_choice_has_a_free_place_if_there_is_one(free: dict[str, int], number: int) -> None:
    for chosen in (choose_least_loaded(free, number), choose_by_affinity(free, home(number))):
        if max(free.values(), default=0) <= 0:
            assert chosen is None
        else:
            assert chosen is not None
            assert free[chosen] > 0


def test_recordings_are_spread_evenly_and_always_in_the_same_way() -> None:
    free = dict.fromkeys(("a:1", "b:1", "c:1", "d:1"), 8)
    chosen = [choose_by_affinity(free, home(number)) for number in range(RECORDINGS)]
    assert chosen == [
        choose_by_affinity(dict(reversed(free.items())), home(n)) for n in range(RECORDINGS)
    ]
    assert min(Counter(chosen).values()) > 0.8 * RECORDINGS / 4


def test_only_the_recordings_of_a_replica_that_leaves_move() -> None:
    free = dict.fromkeys(("a:1", "b:1", "c:1", "d:1"), 8)
    before = [choose_by_affinity(free, home(number)) for number in range(RECORDINGS)]
    del free["b:1"]
    after = [choose_by_affinity(free, home(number)) for number in range(RECORDINGS)]
    moved = {(old, new) for old, new in zip(before, after, strict=True) if old != new}
    assert {old for old, _ in moved} == {"b:1"}
    assert {new for _, new in moved} == {"a:1", "c:1", "d:1"}


@pytest.mark.parametrize("left", [0, 3])
def test_a_replica_that_fills_while_others_are_free_is_passed_over(left: int) -> None:
    free = dict.fromkeys(("a:1", "b:1"), 8)
    known = choose_by_affinity(free, home(0))
    assert known is not None
    assert choose_by_affinity({**free, known: 4}, home(0)) == known
    assert choose_by_affinity({**free, known: left}, home(0)) != known
    assert choose_by_affinity({**dict.fromkeys(free, 0), known: 1}, home(0)) == known


def test_a_recording_is_known_by_its_samples() -> None:
    one = recording(0)
    same = ReferenceAudio(one.samples.copy(), one.sample_rate, "with a transcript")
    assert hash_recording(one) == hash_recording(same)
    others = [recording(1), recording(0, 2.9), ReferenceAudio(one.samples, 16_000)]
    assert len({hash_recording(other) for other in (one, *others)}) == 4
    empty = ReferenceAudio(np.zeros((0, 1), np.float32), 24_000)
    assert hash_recording(empty) != hash_recording(one)


async def spoken_by(cluster: FakeCluster, reference: ReferenceAudio, text: str) -> Replica:
    """Which replica speaks like this recording."""
    before = [replica.solo.counts.started for replica in cluster.replicas]
    request = SpeechRequest(text, "clara", reference=reference)
    async with cluster.edge.get_model("solo").run(request) as utterance:
        assert collect_sound([chunk async for chunk in utterance]) == undisturbed(cluster, text)
    after = [replica.solo.counts.started for replica in cluster.replicas]
    [speaker] = [n for n, (a, b) in enumerate(zip(before, after, strict=True)) if a != b]
    return cluster.replicas[speaker]


async def test_a_recording_goes_where_it_was_encoded() -> None:
    async with fake_cluster(3, capacity=4) as cluster:
        recordings = [recording(number) for number in range(8)]
        first = [await spoken_by(cluster, one, "One.") for one in recordings]
        assert len({str(replica.host.address) for replica in first}) > 1
        for _ in range(3):
            assert [await spoken_by(cluster, one, "Two.") for one in recordings] == first
        await first[0].host.stop()
        await cluster.known(2)
        after = [await spoken_by(cluster, one, "Three.") for one in recordings]
        assert all(new is old for old, new in zip(first, after, strict=True) if old is not first[0])
        assert all(replica is not first[0] for replica in after)


async def test_a_voice_that_everybody_wants_fills_no_replica_while_others_idle() -> None:
    async with fake_cluster(2, capacity=4, may_sound=asyncio.Event()) as cluster:
        voice = recording(0)

        async def speak(number: int) -> None:
            request = SpeechRequest(f"{number}.", "clara", reference=voice)
            async with cluster.edge.get_model("solo").run(request) as utterance:
                assert [chunk async for chunk in utterance]

        asking = [asyncio.create_task(speak(number)) for number in range(8)]
        await eventually(lambda: sum(r.solo.counts.open for r in cluster.replicas) == 8)
        assert [replica.solo.counts.max_open for replica in cluster.replicas] == [4, 4]
        for replica in cluster.replicas:
            assert replica.solo.behaviour.may_sound is not None
            replica.solo.behaviour.may_sound.set()
        await asyncio.gather(*asking)
