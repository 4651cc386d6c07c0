"""What a soak run counts as a failed check, and what not."""

from __future__ import annotations

from dataclasses import replace

from .soak.__main__ import chosen
from .soak.faults import FAULTS
from .soak.listeners import Heard
from .soak.report import Injected, Soak
from .soak.watching import Footprint

IDLE = Footprint(held=0, descriptors=30, memory_bytes={"api": 100, "talker": 200})
FINE = Heard(began_s=0, ended_s=2, error="", same_bits=True, stood_still_s=0)
FAILED = Heard(began_s=9, ended_s=11, error="stage_died", same_bits=True, stood_still_s=0)
RUN = Soak(
    minutes=1,
    seed=1,
    listeners=2,
    injected=[Injected("talker killed", 10, 18), Injected("few descriptors", 30, 36)],
    heard=[FINE, FAILED, replace(FAILED, began_s=31, ended_s=32, error="ConnectTimeout")],
    before=IDLE,
    after=IDLE,
    answers=[(5, 0.2), (33, 4.0), (50, 0.1)],
)


def test_requests_that_a_fault_ended_are_no_broken_promise() -> None:
    assert RUN.broken_promises == []
    assert "| talker killed | 1 | 1 | 1.00 s | 8.0 / 8.0 s |" in RUN.markdown()
    assert "| requests that no fault could end | 1 |" in RUN.markdown()
    assert "`/ready` | 200 ms |" in RUN.markdown()
    assert "new connection | 4000 ms |" in RUN.markdown()


def test_whatever_else_goes_wrong_is() -> None:
    alone = replace(FAILED, began_s=20, ended_s=21)
    under_way = replace(
        FAILED, began_s=29, ended_s=31
    )  # it was accepted before descriptors ran out
    wrong = replace(FINE, same_bits=False)
    for heard in (alone, under_way, wrong):
        assert len(replace(RUN, heard=[*RUN.heard, heard]).broken_promises) == 1
    for after in (
        replace(IDLE, held=1),
        replace(IDLE, descriptors=60),
        replace(IDLE, memory_bytes={"api": 100, "talker": 300}),
    ):
        assert len(replace(RUN, after=after).broken_promises) == 1


def test_every_fault_comes_before_any_comes_again() -> None:
    names = list(FAULTS)
    faults = chosen(3, 2 * len(names), names)
    assert set(faults[: len(FAULTS)]) == set(FAULTS)
    assert faults == chosen(3, 2 * len(names), names) != chosen(4, 2 * len(names), names)
    assert set(chosen(3, 5, names[:2])) == set(names[:2])
