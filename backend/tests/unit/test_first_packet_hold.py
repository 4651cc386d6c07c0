"""Under load a first packet waits for the next frames; otherwise never, and never for long."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.config import CodecDeployment
from cantata.contract.data.chunks import Pcm
from cantata.scheduling.playout_buffers import JitterEstimator
from cantata.stages.codec import CodecStage
from running_sum import RunningSumDecoder
from stage_chunks import codes_chunk

PERIOD_S = 0.5
VERY_SLOWLY_S, SLOWLY_S, QUICKLY_S = 0.95, 0.45, 0.05


class Crowd:
    """A stage whose deliveries come at a certain pace; "old" has been speaking for a while."""

    def __init__(self, interval_s: float, stretch: float = 1.0) -> None:
        self._interval_s = interval_s
        self.now_s = 0.0
        deployment = CodecDeployment.model_validate({"slots": 4, "credit_s": 100.0})
        self.stage = CodecStage(RunningSumDecoder(), deployment, clock=lambda: self.now_s)
        self._next: dict[str, int] = {}
        self.begin("old")
        for _ in range(10):
            self.deliver("old")
        self.begin("new", stretch=stretch)

    def begin(
        self, request_id: str, playout_deadline_s: float | None = None, stretch: float = 1.0
    ) -> None:
        self.stage.add(
            request_id, None, batch=False, playout_deadline_s=playout_deadline_s, stretch=stretch
        )
        self._next[request_id] = 0

    def deliver(self, *request_ids: str, final: bool = False) -> dict[str, list[int]]:
        """A frame of each; who was heard of after it, and with how many frames at a time."""
        self.now_s += self._interval_s
        codes = np.ones((1, 2), np.int32)
        self.stage.receive([codes_chunk(i, self._next[i], codes, final) for i in request_ids])
        for request_id in request_ids:
            self._next[request_id] += 1
        return self.heard()

    def heard(self) -> dict[str, list[int]]:
        heard: dict[str, list[int]] = {}
        while self.stage.has_work():
            for chunk in self.stage.step().chunks:
                assert isinstance(chunk.payload, Pcm)
                frames = chunk.payload.units // RunningSumDecoder.samples_per_frame
                heard.setdefault(chunk.request_id, []).append(frames)
        return heard


def test_where_frames_come_slowly_the_first_leaves_with_the_second() -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert crowd.deliver("old", "new") == {"old": [1], "new": [2]}
    assert crowd.deliver("old", "new") == {"old": [1], "new": [1]}


def test_where_they_come_very_slowly_it_waits_for_the_third() -> None:
    crowd = Crowd(VERY_SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert sum(crowd.deliver("old", "new")["new"]) == 3


@pytest.mark.parametrize(("stretch", "frames"), [(2.0, 3), (4.0, 5), (0.25, 1)])
def test_a_fast_listener_needs_more_frames_for_the_same_time(stretch: float, frames: int) -> None:
    crowd = Crowd(SLOWLY_S, stretch)
    for _ in range(frames - 1):
        assert "new" not in crowd.deliver("old", "new")
    assert sum(crowd.deliver("old", "new")["new"]) == frames


def test_where_frames_come_quickly_it_leaves_at_once() -> None:
    assert Crowd(QUICKLY_S).deliver("old", "new") == {"old": [1], "new": [1]}


def test_while_a_crowd_begins_it_waits_for_one_frame_more() -> None:
    crowd = Crowd(QUICKLY_S)
    crowd.begin("second")
    crowd.begin("third")
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert sum(crowd.deliver("old", "new")["new"]) == 2
    crowd.stage.abort("third")
    crowd.begin("a moment later")
    assert crowd.deliver("old", "a moment later") == {"old": [1]}
    crowd.stage.abort("second")
    for _ in range(40):
        crowd.deliver("old")
    crowd.begin("later")
    assert crowd.deliver("old", "later") == {"old": [1], "later": [1]}


def test_an_only_frame_leaves_at_once() -> None:
    crowd = Crowd(SLOWLY_S)
    crowd.deliver("old")
    assert crowd.deliver("new", final=True) == {"new": [1]}


def test_it_does_not_wait_for_text_that_is_late() -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert crowd.deliver("old") == {"old": [1], "new": [1]}


def test_it_does_not_wait_when_nothing_is_delivered_any_more() -> None:
    """All texts may be late at once."""
    crowd = Crowd(SLOWLY_S)
    assert crowd.stage.get_due_in_s() is None
    assert crowd.deliver("old", "new") == {"old": [1]}
    assert crowd.stage.get_due_in_s() == 4 * PERIOD_S
    crowd.now_s += 3.9 * PERIOD_S
    assert crowd.heard() == {}
    crowd.now_s += 0.2 * PERIOD_S
    assert crowd.heard() == {"new": [1]}
    assert crowd.stage.get_due_in_s() is None
    assert crowd.deliver("old", "new") == {"old": [1], "new": [1]}


@pytest.mark.parametrize("leaves", ["ends", "is aborted"])
def test_it_does_not_wait_once_it_is_alone(leaves: str) -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old": [1]}
    if leaves == "ends":
        assert crowd.deliver("old", final=True) == {"old": [1], "new": [1]}
    else:
        crowd.stage.abort("old")
        assert crowd.heard() == {"new": [1]}


def test_the_next_piece_of_an_utterance_is_decoded_when_it_is_due() -> None:
    """Its listener still plays the piece before it: it is not a new stream."""
    crowd = Crowd(SLOWLY_S)
    crowd.begin("next", playout_deadline_s=1000.0)
    crowd.begin("due", playout_deadline_s=0.0)
    assert list(crowd.deliver("old", "new", "next", "due")) == ["due", "old", "next"]


def test_the_reserve_is_for_the_longest_recent_latency() -> None:
    """From one delivery to the next and through two batches, with a fifth of a period on top."""
    jitter = JitterEstimator(frame_period_s=1.0)
    for number in range(10):
        jitter.record_delivery(0.1 * number)
    assert jitter.reserve_frames() == 1
    jitter.record_batch(0.4)
    assert jitter.reserve_frames() == 2
    jitter.record_delivery(2.0)
    assert jitter.reserve_frames() == 3
    for number in range(200):
        jitter.record_delivery(2.0 + 0.1 * number)
    assert jitter.reserve_frames() == 1
    jitter.record_delivery(1000.0)
    assert jitter.reserve_frames() == 1, "a pause is no way"
