"""Admission of pictures: by slots, by the forecast, by what the caller can wait."""

from __future__ import annotations

import pytest

from cantata.contract.data.errors import InvalidRequest, Overloaded
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.process.messages import ForwardCost
from cantata.scheduling.step_admission import (
    NO_SLOT,
    TOO_LATE,
    StepAdmission,
    StepLimits,
)
from cantata.scheduling.step_plan import JobView, finish_times

COST = ForwardCost(0.0, 0.001, 0.0)
LIMITS = StepLimits(slots=4, max_wait_s=10, max_tokens=10_000)


def job(name: str, seconds: float, **more: object) -> JobView:
    """That takes so long alone."""
    values = {"arrived_s": 0.0} | more
    return JobView(name, ForwardSize(1000, 0), round(seconds), round(seconds), **values)  # type: ignore[arg-type]


@pytest.fixture
def admission() -> StepAdmission:
    return StepAdmission(LIMITS)


def test_an_idle_model_takes_whatever_comes(admission: StepAdmission) -> None:
    admission.check(job("a", 1000), [], COST, 0.0)
    admission.check(job("a", 1000), [], None, 0.0)
    assert not sum(admission.refused.values())


def test_a_picture_that_others_hold_up_for_too_long_is_rejected_until_it_would_not_be(
    admission: StepAdmission,
) -> None:
    others = [job("a", 8), job("b", 8)]
    newcomer = job("c", 9)
    with pytest.raises(Overloaded, match="2 pictures") as caught:
        admission.check(newcomer, others, COST, 0.0)
    assert admission.refused[TOO_LATE] == 1
    # 16 s of work before it, of which it may wait 10.
    assert caught.value.retry_after_s == pytest.approx(6)
    later = [job("b", 8, arrived_s=0.0)]
    admission.check(job("c", 9, arrived_s=8.0), later, COST, 8.0)


def test_answers_are_counted_apart(admission: StepAdmission) -> None:
    others = [job("a", 8), *(job(name, 8, writes=True) for name in "bcd")]
    with pytest.raises(Overloaded, match="1 pictures are being drawn and 3 answers written"):
        admission.check(job("e", 9), others, COST, 0.0)


def test_a_short_one_goes_before_long_ones_and_is_taken(admission: StepAdmission) -> None:
    admission.check(job("c", 1), [job("a", 50), job("b", 50)], COST, 0.0)


def test_a_deadline_that_others_prevent_is_overload_and_one_that_cannot_be_kept_is_the_callers(
    admission: StepAdmission,
) -> None:
    others = [job("a", 3)]
    admission.check(job("b", 4, deadline_s=8.0), others, COST, 0.0)
    with pytest.raises(Overloaded):
        admission.check(job("b", 4, deadline_s=6.5), others, COST, 0.0)
    with pytest.raises(InvalidRequest, match=r"about 4\.0 s even alone") as caught:
        admission.check(job("b", 4, deadline_s=3.0), [], COST, 0.0)
    assert caught.value.param == "deadline_s"
    with pytest.raises(InvalidRequest):
        admission.check(job("b", 4, deadline_s=5.0), [], COST, 0.0, besides_s=2.0)


def test_the_slots_are_a_limit_and_the_retry_time_is_when_one_is_free(
    admission: StepAdmission,
) -> None:
    others = [job(str(n), 3 + n) for n in range(4)]
    with pytest.raises(Overloaded, match="as many as may be") as caught:
        admission.check(job("e", 1), others, COST, 0.0)
    free_s = min(finish_times(others, COST, LIMITS.max_tokens, 0.0).values())
    assert caught.value.retry_after_s == pytest.approx(free_s)
    with pytest.raises(Overloaded):
        admission.check_slots(others, None, 0.0)
    assert admission.refused[NO_SLOT] == 2


def test_file_renders_wait_as_long_as_it_takes_but_leave_half_of_the_slots(
    admission: StepAdmission,
) -> None:
    admission.check(job("b", 5, batch=True), [job("a", 500)], COST, 0.0)
    with pytest.raises(Overloaded):
        admission.check(job("b", 5, batch=True), [job("a", 5), job("c", 5)], COST, 0.0)
