"""What is repeated after a loss: each sample and word once, and nothing that differs."""

from __future__ import annotations

import numpy as np
import pytest
from fake_cluster import collect_sound
from hypothesis import given
from hypothesis import strategies as st

from cantata.contract.data.errors import ReplicaLost
from cantata.contract.service import SpeechChunk, SpokenWord
from cantata.distributed.edge.replay import ReplayDeduplicator

cuts = st.lists(st.integers(0, 9), min_size=1, max_size=8)


def test_a_replay_knows_how_much_sound_its_listener_has() -> None:
    now = [100.0]
    replay = ReplayDeduplicator(1000, clock=lambda: now[0])
    assert replay.playout_deadline_s == 0.0
    replay.take(SpeechChunk(np.ones((500, 1), np.float32)))
    replay.take(SpeechChunk(np.ones((1500, 1), np.float32)))
    assert replay.playout_deadline_s == 102.0
    now[0] = 105.0
    replay.restart()
    replay.take(SpeechChunk(np.ones((2000, 1), np.float32)))
    assert replay.playout_deadline_s == 102.0, "what is dropped is not played again"
    replay.take(SpeechChunk(np.ones((300, 1), np.float32)))
    assert replay.playout_deadline_s == 105.3


@given(cuts, cuts, st.integers(1, 8))
def test_a_replay_gives_each_sample_and_word_once(
    first: list[int], second: list[int], lost_after: int
) -> None:
    """However the two replicas cut the same sound into chunks."""
    length = max(sum(first), sum(second)) + 1
    sound = np.random.default_rng(length).standard_normal((length, 2)).astype(np.float32)

    def chunks(lengths: list[int]) -> list[SpeechChunk]:
        ends = np.minimum(np.cumsum([*lengths, length]), length)
        starts = [0, *ends[:-1]]
        return [
            SpeechChunk(
                sound[start:end],
                tuple(SpokenWord(n, n + 1, n, n) for n in range(start, end) if n % 3 == 0),
            )
            for start, end in zip(starts, ends, strict=True)
        ]

    replay, heard = ReplayDeduplicator(24_000), list[SpeechChunk]()
    heard += [new for chunk in chunks(first)[:lost_after] if (new := replay.take(chunk))]
    replay.restart()
    heard += [new for chunk in chunks(second) if (new := replay.take(chunk))]
    replay.check_end()
    assert collect_sound(heard) == sound.tobytes()
    words = [word.text_start for chunk in heard for word in chunk.words]
    assert words == list(range(0, length, 3))


def test_a_single_other_bit_is_noticed() -> None:
    sound = np.random.default_rng(0).standard_normal((100, 1)).astype(np.float32)
    other = sound.copy()
    other.view(np.uint32)[37] ^= 1
    replay = ReplayDeduplicator(24_000)
    replay.take(SpeechChunk(sound[:60]))
    replay.restart()
    assert replay.take(SpeechChunk(other[:50])) is None
    with pytest.raises(ReplicaLost, match="differently"):
        replay.take(SpeechChunk(other[50:]))
