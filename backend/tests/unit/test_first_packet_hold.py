"""In a crowd a first packet waits for the frame behind it; nowhere else, and never for long."""

from __future__ import annotations

import numpy as np
import pytest

from cantata.config import CodecDeployment
from cantata.contract.chunks import FrameChunk
from cantata.engine.codec import CodecStage
from cantata.scheduling.cadence import Cadence
from running_sum import RunningSumDecoder

PERIOD_S = 0.5
SLOWLY_S, QUICKLY_S = 0.4, 0.05


class Crowd:
    """A stage whose deliveries come at a certain pace; "old" has been speaking for a while."""

    def __init__(self, interval_s: float) -> None:
        self._interval_s = interval_s
        self._now_s = 0.0
        deployment = CodecDeployment.model_validate({"slots": 4, "credit_s": 100.0})
        self.stage = CodecStage(RunningSumDecoder(), deployment, clock=lambda: self._now_s)
        self._next: dict[str, int] = {}
        self.begin("old")
        for _ in range(10):
            self.deliver("old")
        self.begin("new")

    def begin(self, request_id: str) -> None:
        self.stage.add(request_id, None, batch=False)
        self._next[request_id] = 0

    def deliver(self, *request_ids: str, final: bool = False) -> set[str]:
        """A frame of each; who was heard of after it."""
        self._now_s += self._interval_s
        codes = np.ones((1, 2), np.int32)
        self.stage.receive([FrameChunk(i, self._next[i], codes, final) for i in request_ids])
        for request_id in request_ids:
            self._next[request_id] += 1
        return self.heard()

    def heard(self) -> set[str]:
        heard = set()
        while self.stage.has_work():
            heard |= {chunk.request_id for chunk in self.stage.step().chunks}
        return heard


def test_where_frames_come_slowly_the_first_waits_for_the_second() -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old"}
    assert crowd.deliver("old", "new") == {"old", "new"}
    assert crowd.deliver("old", "new") == {"old", "new"}


def test_where_frames_come_quickly_it_leaves_at_once() -> None:
    assert Crowd(QUICKLY_S).deliver("old", "new") == {"old", "new"}


def test_an_only_frame_leaves_at_once() -> None:
    crowd = Crowd(SLOWLY_S)
    crowd.deliver("old")
    assert crowd.deliver("new", final=True) == {"new"}


def test_it_does_not_wait_for_text_that_is_late() -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old"}
    assert crowd.deliver("old") == {"old", "new"}


@pytest.mark.parametrize("leaves", ["ends", "is aborted"])
def test_it_does_not_wait_once_it_is_alone(leaves: str) -> None:
    crowd = Crowd(SLOWLY_S)
    assert crowd.deliver("old", "new") == {"old"}
    if leaves == "ends":
        assert crowd.deliver("old", final=True) == {"old", "new"}
    else:
        crowd.stage.abort("old")
        assert crowd.heard() == {"new"}


def test_the_cadence_is_that_of_deliveries_and_batches_and_pauses_do_not_count() -> None:
    cadence = Cadence(PERIOD_S)
    for number in range(50):
        cadence.delivered(number * 0.15)
        cadence.decoded(0.01)
    assert not cadence.is_slow
    cadence.delivered(1000.0)
    assert not cadence.is_slow
    for _ in range(50):
        cadence.decoded(0.1)
    assert cadence.is_slow
