"""Whose part is made next: those who run out first, and newcomers as soon as there is time."""

from __future__ import annotations

from cantata.scheduling.part_plan import IN_TIME_S, PartPlan, PendingPart


def listener(name: str, deadline_s: float, number: int = 1) -> PendingPart:
    return PendingPart(name, number, deadline_s)


NEW = PendingPart("new", 0, None)


def measured(first_s: float = 0.05, other_s: float = 0.05, sound_s: float = 0.4) -> PartPlan:
    """A plan that has seen a request."""
    plan = PartPlan()
    plan.record(0, first_s, sound_s)
    for number in (1, 2, 3):
        plan.record(number, other_s, 1.0)
    return plan


def test_who_runs_out_first_is_first_and_files_are_last() -> None:
    plan = measured()
    file = PendingPart("file", 3, -5.0, batch=True)
    parts = [file, listener("b", 8.0), listener("a", 7.0)]
    assert plan.choose(parts, 0.0).request_id == "a"
    assert plan.choose([file, listener("b", 8.0)], 0.0).request_id == "b"
    assert plan.choose([file], 0.0).request_id == "file"
    assert plan.choose([file, NEW], 0.0).request_id == "new"


def test_before_anything_was_measured_a_newcomer_starts_at_once() -> None:
    assert PartPlan().choose([listener("a", 0.5), NEW], 0.0) is NEW


def test_of_newcomers_the_one_that_came_first_starts() -> None:
    parts = [PendingPart("x", 0, None), PendingPart("y", 0, None)]
    assert measured().choose(parts, 0.0).request_id == "x"


def test_a_newcomer_waits_while_its_first_part_would_make_somebody_late() -> None:
    plan, room_s = measured(first_s=0.1, other_s=0.05), 0.1 + 0.05 + IN_TIME_S
    assert plan.choose([listener("a", room_s + 0.01), NEW], 0.0) is NEW
    assert plan.choose([listener("a", room_s - 0.01), NEW], 0.0).request_id == "a"


def test_the_parts_of_a_crowd_add_up() -> None:
    plan = measured(first_s=0.1, other_s=0.05)
    crowd = [listener(f"{number}", 0.3) for number in range(4)]
    assert plan.choose([*crowd[:3], NEW], 0.0) is NEW
    assert plan.choose([*crowd, NEW], 0.0) is crowd[0]


def test_a_newcomer_waits_for_those_whose_parts_come_before_its_own_second_one() -> None:
    plan = measured(first_s=0.05, other_s=0.1, sound_s=0.3)
    crowd = [listener("a", 0.34), listener("b", 0.34)]
    assert plan.choose([*crowd[:1], NEW], 0.0) is NEW
    assert plan.choose([*crowd, NEW], 0.0) is crowd[0]


def test_the_first_part_of_a_next_sentence_takes_what_first_parts_take() -> None:
    plan = measured(first_s=0.2, other_s=0.02)
    assert plan.choose([listener("a", 0.35, number=1), NEW], 0.0) is NEW
    assert plan.choose([listener("a", 0.35, number=0), NEW], 0.0).request_id == "a"


def test_a_listener_that_has_waited_for_a_second_delays_no_newcomer() -> None:
    plan = measured()
    assert plan.choose([listener("a", -0.5), NEW], 0.0).request_id == "a"
    assert plan.choose([listener("a", -1.5), NEW], 0.0) is NEW


def test_where_no_second_part_can_be_in_time_newcomers_start_all_the_same() -> None:
    plan = measured(first_s=1.0, other_s=2.0, sound_s=0.5)
    assert plan.choose([listener("a", 20.0), NEW], 0.0) is NEW


def test_a_slow_part_counts_less_and_less() -> None:
    plan, parts = measured(first_s=0.05, other_s=0.5, sound_s=1.0), [listener("a", 0.4), NEW]
    assert plan.choose(parts, 0.0).request_id == "a"
    for _ in range(60):
        plan.record(1, 0.05, 1.0)
    assert plan.choose(parts, 0.0) is NEW


def test_a_part_without_sound_is_no_short_one() -> None:
    """It has words alone; otherwise nobody's second part would ever be in time."""
    plan, crowd = measured(), [listener("a", 0.3)]
    plan.record(0, 0.01, 0.0)
    assert plan.choose([*crowd, NEW], 0.0) is NEW


def test_a_newcomer_waits_for_parts_that_are_being_made_too() -> None:
    plan, making = measured(first_s=0.1, other_s=0.05), [listener("b", 9.0)]
    room_s = 0.05 + 0.1 + 0.05 + IN_TIME_S
    assert plan.choose([listener("a", room_s + 0.01), NEW], 0.0, making) is NEW
    assert plan.choose([listener("a", room_s - 0.01), NEW], 0.0, making).request_id == "a"


def test_a_part_is_made_beside_another_one_that_has_time_for_it() -> None:
    plan, room_s = measured(first_s=0.1, other_s=0.05), 0.05 + 0.1 + IN_TIME_S
    assert plan.fits_beside(NEW, [], 0.0)
    assert plan.fits_beside(NEW, [listener("a", room_s + 0.01)], 0.0)
    assert not plan.fits_beside(NEW, [listener("a", room_s - 0.01)], 0.0)
    assert not plan.fits_beside(NEW, [listener("b", 9.0), listener("a", room_s)], 0.0)
    assert plan.fits_beside(NEW, [PendingPart("first", 0, None)], 0.0)


def test_a_part_that_is_late_by_itself_keeps_nobody_waiting() -> None:
    plan = measured(first_s=0.1, other_s=0.05)
    assert plan.fits_beside(NEW, [listener("a", 0.05 + IN_TIME_S - 0.01)], 0.0)
