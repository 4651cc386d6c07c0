"""Admission: places, a short queue, a clear no."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from cantata.contract.errors import Overloaded
from cantata.scheduling.admission import Admission, QueueLimits


def admission_of(
    places: int, max_waiting: int = 2, max_wait_s: float = 60, **options: Any
) -> Admission:
    return Admission(places, QueueLimits(max_waiting, max_wait_s), **options)


def counts(admission: Admission) -> tuple[int, int, int]:
    """Running, waiting, waiting as file renders."""
    report = admission.report
    return report.running, report.waiting, report.waiting_batch


class Guests:
    """Requests that stay until they are told to leave."""

    def __init__(self, admission: Admission, group: asyncio.TaskGroup) -> None:
        self.inside: list[str] = []
        """In the order in which they were admitted."""
        self.tasks: dict[str, asyncio.Task[None]] = {}
        self._admission = admission
        self._group = group
        self._leave: dict[str, asyncio.Event] = {}

    async def come(self, *names: str, batch: bool = False) -> None:
        for name in names:
            self._leave[name] = asyncio.Event()
            self.tasks[name] = self._group.create_task(self._stay(name, batch))
        await self.settle()

    async def leave(self, *names: str) -> None:
        for name in names:
            self._leave[name].set()
        await self.settle()

    async def settle(self) -> None:
        for _ in range(10):  # turns of the loop, not time
            await asyncio.sleep(0)

    async def _stay(self, name: str, batch: bool) -> None:
        async with self._admission.admit(batch=batch):
            self.inside.append(name)
            await self._leave[name].wait()


async def test_queue_is_served_in_order_and_bounded() -> None:
    admission = admission_of(places=1, max_waiting=2)
    async with asyncio.TaskGroup() as group:
        guests = Guests(admission, group)
        await guests.come("a", "b", "c")
        assert counts(admission) == (1, 2, 0)
        with pytest.raises(Overloaded, match="1 requests are running and 2 waiting"):
            async with admission.admit():
                pass
        await guests.leave("a", "b", "c")
    assert guests.inside == ["a", "b", "c"]
    assert counts(admission) == (0, 0, 0)
    assert admission.report.refused == {"queue_full": 1, "waited_too_long": 0}


async def test_waiting_ends_with_a_no_and_leaves_nothing_behind() -> None:
    admission = admission_of(places=1, max_wait_s=0.01)
    async with admission.admit():
        with pytest.raises(Overloaded, match="no place became free"):
            async with admission.admit():
                pass
    assert counts(admission) == (0, 0, 0)
    assert admission.report.refused == {"queue_full": 0, "waited_too_long": 1}
    async with admission.admit():
        assert admission.report.running == 1


async def test_a_cancelled_waiter_gives_its_turn_away() -> None:
    admission = admission_of(places=1)
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
    admission = admission_of(places=1)
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
    admission = admission_of(places=1)
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
    admission = admission_of(places=4, max_waiting=0, max_wait_s=0.01)
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


async def test_more_places_let_waiters_in_and_fewer_end_nobody() -> None:
    admission = admission_of(places=1, max_waiting=8)
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
    """From how long places were held of late and how many wait for one."""
    now = [0.0]
    admission = admission_of(places=2, max_waiting=waiting, clock=lambda: now[0])
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
    assert refusal.value.retry_after_s == pytest.approx(retry_s, rel=0.01)
