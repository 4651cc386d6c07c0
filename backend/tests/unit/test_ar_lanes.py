"""Lanes stay together, whoever comes and goes."""

from __future__ import annotations

import random

from cantata.stages.ar.lanes import LaneRequest, Lanes


def make_run(name: str, prompt_len: int = 1, frames: int = 5, priority: int = 0) -> LaneRequest:
    return LaneRequest(name, 0, prompt_len, frames, resumable=False, priority=priority)


class Memory:
    """What is written in each lane."""

    def __init__(self) -> None:
        self.held = [""] * 20

    def move(self, source: int, target: int, length: int) -> None:
        self.held[target] = self.held[source][:length]


def test_a_prompt_of_one_position_needs_no_step_of_its_own() -> None:
    lanes = Lanes(Memory().move)
    short, long = make_run("short"), make_run("long", prompt_len=3)
    lanes.add(short)
    lanes.add(long)
    assert (lanes.used, lanes.list_waiting()) == ([short], [long])
    assert (short.frame, short.steps, long.steps) == (0, True, False)
    lanes.begin(long)
    assert (lanes.used, lanes.list_waiting()) == ([short, long], [])
    assert (long.position, long.frame) == (3, 1)


def test_who_is_listened_to_goes_first_then_who_came_first() -> None:
    lanes = Lanes(Memory().move)
    runs = [make_run(str(n), prompt_len=2, priority=n % 2) for n in range(4)]
    for run in runs:
        lanes.add(run)
    assert [run.request_id for run in lanes.list_waiting()] == ["0", "2", "1", "3"]


def test_lanes_are_dense_and_keep_what_their_requests_hold() -> None:
    dice, memory = random.Random(0), Memory()
    lanes, held = Lanes(memory.move), dict[str, LaneRequest]()
    for number in range(400):
        if held and (len(held) == len(memory.held) or dice.random() < 0.5):
            run = held.pop(dice.choice(sorted(held)))
            lanes.remove(run)
            assert not run.is_held
            assert lanes.find(run.request_id) is None
        else:
            run = held[f"r{number}"] = make_run(f"r{number}")
            lanes.add(run)
            assert run.lane is not None
            memory.held[run.lane] = run.request_id
            run.position = len(run.request_id)
        assert len(lanes) == len(lanes.used) == len(held)
        for lane, run in enumerate(lanes.used):
            assert run.lane == lane
            assert memory.held[lane] == run.request_id


def test_there_is_work_while_a_frame_can_be_begun() -> None:
    lanes = Lanes(Memory().move)
    assert not lanes.has_work()
    run, waits = make_run("runs", frames=1), make_run("waits", prompt_len=4)
    lanes.add(run)
    assert lanes.has_work()
    run.frames_left = 0
    assert not lanes.has_work()
    lanes.add(waits)
    assert lanes.has_work()
    lanes.remove(waits)
    assert not lanes.has_work()
    assert not lanes.list_waiting()
