"""Admission: places, a short queue, then rejection."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cantata.contract.data.errors import Overloaded
from cantata.scheduling.admission import BEGINNING_AT_ONCE, Admission, AdmissionPermit, QueueLimits


def build_admission(
    places: int, max_waiting: int = 2, max_wait_s: float = 60, **options: Any
) -> Admission:
    return Admission(places, QueueLimits(max_waiting, max_wait_s), **options)


def counts(admission: Admission) -> tuple[int, int, int]:
    """Running, waiting, waiting as file renders."""
    report = admission.report
    return report.running, report.waiting, report.waiting_batch


class Guests:
    """Requests that stay until released."""

    def __init__(
        self, admission: Admission, group: asyncio.TaskGroup, *, at_once: bool = True
    ) -> None:
        """`at_once`: each has sound as soon as it is inside."""
        self.inside: list[str] = []
        """In the order in which they were admitted."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self.places: dict[str, AdmissionPermit] = {}
        self.at_once = at_once
        self._admission = admission
        self._group = group
        self._leave: dict[str, asyncio.Event] = {}

    async def come(self, *names: str, batch: bool = False, stretch: float = 1.0) -> None:
        for name in names:
            self._leave[name] = asyncio.Event()
            self.tasks[name] = self._group.create_task(self._stay(name, batch, stretch))
        await self.settle()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):  # turns of the loop, not time
            await asyncio.sleep(0)

    async def _stay(self, name: str, batch: bool, stretch: float) -> None:
        async with self._admission.admit(batch=batch, stretch=stretch) as place:
            self.inside.append(name)
            self.places[name] = place
            if self.at_once:
                place.mark_first_sound()
            await self._leave[name].wait()


async def test_a_fast_listener_needs_the_places_of_several() -> None:
    admission = build_admission(places=4)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a", "b")
        await guests.come("fast", stretch=2.5)
        await guests.come("behind it")
        assert guests.inside == ["a", "b"]
        await guests.leave("a")
        assert guests.inside == ["a", "b", "fast"]
        await guests.leave("b")
        assert guests.inside == ["a", "b", "fast", "behind it"]
        await guests.come("slow", stretch=0.25)
        assert "slow" not in guests.inside
        await guests.leave("fast", "behind it")
        await guests.come(*"cde")
        assert guests.inside[4:] == ["slow", "c", "d", "e"], "nothing is left of what it took"
        await guests.leave("slow", *"cde")


async def test_a_fast_listener_is_admitted_alone_and_a_file_takes_one_place() -> None:
    admission = build_admission(places=2)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("file", batch=True, stretch=4.0)
        await guests.come("fast", stretch=4.0)
        assert guests.inside == ["file", "fast"]
        guests.tasks["fast"].cancel()
        await guests.leave("file")
        await guests.come("a", "b")
        assert guests.inside == ["file", "fast", "a", "b"]
        await guests.leave("a", "b")


async def test_queue_is_served_in_order_and_bounded() -> None:
    admission = build_admission(places=1, max_waiting=2)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a", "b", "c")
        assert counts(admission) == (1, 2, 0)
        with pytest.raises(Overloaded, match="1 request is running and 2 waiting"):
            async with admission.admit():
                pass
        await guests.leave("a", "b", "c")
    assert guests.inside == ["a", "b", "c"]
    assert counts(admission) == (0, 0, 0)
    assert admission.report.refused == {"queue_full": 1, "waited_too_long": 0}


async def test_waiting_ends_with_a_no_and_leaves_nothing_behind() -> None:
    admission = build_admission(places=1, max_wait_s=0.01)
    async with admission.admit():
        with pytest.raises(Overloaded, match="no place became free"):
            async with admission.admit():
                pass
    assert counts(admission) == (0, 0, 0)
    assert admission.report.refused == {"queue_full": 0, "waited_too_long": 1}
    async with admission.admit():
        assert admission.report.running == 1


async def test_a_cancelled_waiter_gives_its_turn_away() -> None:
    admission = build_admission(places=1)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a", "b", "c")
        guests.tasks["b"].cancel()
        await guests.leave("a")
        assert guests.inside == ["a", "c"]
        await guests.leave("c")
    assert counts(admission) == (0, 0, 0)


@pytest.mark.parametrize("batch", [False, True])
async def test_a_place_given_to_one_who_gives_up_at_that_moment_is_not_lost(batch: bool) -> None:
    admission = build_admission(places=1)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a")
        await guests.come("b", batch=batch)
        admission.resize(2)
        assert counts(admission) == (2, 0, 0)
        guests.tasks["b"].cancel()
        await guests.settle()
        assert (counts(admission), guests.inside) == ((1, 0, 0), ["a"])
        await guests.leave("a")


async def test_live_requests_go_before_file_renders_that_came_first() -> None:
    admission = build_admission(places=1)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("live 1")
        await guests.come("file 1", "file 2", batch=True)
        await guests.come("live 2", "live 3")
        assert counts(admission) == (1, 2, 2)
        for name in ("live 1", "live 2", "live 3", "file 1", "file 2"):
            await guests.leave(name)
    assert guests.inside == ["live 1", "live 2", "live 3", "file 1", "file 2"]


async def test_file_renders_use_half_of_what_is_idle_and_wait_as_long_as_it_takes() -> None:
    admission = build_admission(places=4, max_waiting=0, max_wait_s=0.01)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        files = [f"file {number}" for number in range(6)]
        await guests.come(*files, batch=True)
        assert counts(admission) == (2, 0, 4)
        await guests.come("live 1", "live 2")
        assert counts(admission) == (4, 0, 4)
        with pytest.raises(Overloaded):
            async with admission.admit():
                pass
        await guests.leave("file 0")
        assert counts(admission) == (4, 0, 3)
        await guests.leave("live 1", "live 2", *files)
    assert [name for name in guests.inside if name in files] == files
    assert counts(admission) == (0, 0, 0)


async def test_more_places_admit_waiting_requests_and_fewer_end_none() -> None:
    admission = build_admission(places=1, max_waiting=8)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come(*"abcde")
        assert guests.inside == ["a"]
        admission.resize(3)
        await guests.settle()
        assert guests.inside == ["a", "b", "c"]
        admission.resize(1)
        await guests.leave("a", "b")
        assert counts(admission) == (1, 2, 0)
        await guests.leave("c")
        assert guests.inside == ["a", "b", "c", "d"]
        await guests.leave("d", "e")
    assert guests.inside == list("abcde")


@pytest.mark.parametrize(
    ("held_s", "waiting", "retry_s"), [(0.001, 0, 1.0), (8.0, 0, 4.0), (8.0, 3, 16.0), (600, 0, 30)]
)
async def test_a_no_says_when_there_will_be_room(
    held_s: float, waiting: int, retry_s: float
) -> None:
    """From the recent time per request and the length of the queue."""
    now = [0.0]
    admission = build_admission(places=2, max_waiting=waiting, clock=lambda: now[0])
    for _ in range(50):
        async with admission.admit():
            now[0] += held_s
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        names = [str(number) for number in range(2 + waiting)]
        await guests.come(*names)
        with pytest.raises(Overloaded) as refusal:
            async with admission.admit():
                pass
        await guests.leave(*names)
    assert refusal.value.retry_after_s == pytest.approx(retry_s, rel=0.26)


async def test_rejections_at_one_time_get_different_retry_times() -> None:
    admission = build_admission(places=1, max_waiting=0)
    told = []
    async with admission.admit():
        for _ in range(50):
            with pytest.raises(Overloaded) as refusal:
                admission.check()
            told.append(refusal.value.retry_after_s)
    assert len({round(seconds, 2) for seconds in told}) > 30
    assert 0.75 <= min(told) <= max(told) <= 1.25
    admission.check()


async def test_only_a_few_begin_at_once_and_the_next_when_one_has_sound() -> None:
    admission = build_admission(places=32, max_waiting=32)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group, at_once=False)
        names = [str(number) for number in range(BEGINNING_AT_ONCE + 3)]
        await guests.come(*names)
        assert guests.inside == names[:BEGINNING_AT_ONCE]
        guests.places["1"].mark_first_sound()
        guests.places["1"].mark_first_sound()
        await guests.settle()
        assert guests.inside == names[: BEGINNING_AT_ONCE + 1]
        await guests.leave("0")  # without any
        assert guests.inside == names[: BEGINNING_AT_ONCE + 2]
        await guests.leave(*names)
    assert guests.inside == names
    assert counts(admission) == (0, 0, 0)


async def test_where_many_run_many_begin() -> None:
    admission = build_admission(places=96, max_waiting=96)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group, at_once=False)
        names = [str(number) for number in range(20)]
        await guests.come(*names)
        assert len(guests.inside) == 12
        await guests.leave(*names)
    assert len(guests.inside) == 20


async def test_a_request_without_sound_does_not_hold_up_the_next_for_long(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("cantata.scheduling.admission.BEGINNING_S", 0.01)
    admission = build_admission(places=8, max_waiting=8)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group, at_once=False)
        await guests.come(*"abcdef")
        async with asyncio.timeout(30):
            while len(guests.inside) < 6:  # noqa: ASYNC110
                await asyncio.sleep(0.005)
        await guests.leave(*"abcdef")


async def test_no_request_begins_while_a_listener_has_little_left() -> None:
    calm = [False]
    admission = build_admission(places=8, has_headroom=lambda: calm[0])
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a", "b")
        assert guests.inside == ["a"]  # without running streams, none can be disturbed
        calm[0] = True
        admission.look_again()
        await guests.settle()
        assert guests.inside == ["a", "b"]
        await guests.leave("a", "b")


async def test_one_place_is_never_a_file_s() -> None:
    admission = build_admission(places=1, max_waiting=0, slots=2)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("file 1", "file 2", batch=True)
        for number, name in enumerate(("live 1", "live 2"), start=2):
            await guests.come(name)
            assert len(guests.inside) == number
            with pytest.raises(Overloaded):
                admission.check()
            await guests.leave(name)
        assert guests.inside == ["file 1", "live 1", "live 2"]
        await guests.leave("file 1", "file 2")
    assert counts(admission) == (0, 0, 0)
