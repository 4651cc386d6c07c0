"""Admission: places, a short queue, a clear no."""

import asyncio

import pytest

from cantata.contract.errors import Overloaded
from cantata.scheduling.admission import Admission


async def test_queue_is_served_in_order_and_bounded() -> None:
    admission = Admission(places=1, max_waiting=2, max_wait_s=60)
    order: list[int] = []
    leave = asyncio.Event()

    async def enter(number: int) -> None:
        async with admission.admit():
            order.append(number)
            await leave.wait()

    async with asyncio.TaskGroup() as group:
        for number in range(3):
            group.create_task(enter(number))
        await asyncio.sleep(0)
        assert (admission.running, admission.waiting) == (1, 2)
        with pytest.raises(Overloaded) as refusal:
            async with admission.admit():
                pass
        assert 0 < refusal.value.retry_after_s <= 10
        leave.set()
    assert order == [0, 1, 2]
    assert (admission.running, admission.waiting) == (0, 0)


async def test_waiting_ends_with_a_no_and_leaves_nothing_behind() -> None:
    admission = Admission(places=1, max_waiting=2, max_wait_s=0.01)
    async with admission.admit():
        with pytest.raises(Overloaded, match="no place became free"):
            async with admission.admit():
                pass
    assert (admission.running, admission.waiting) == (0, 0)
    async with admission.admit():
        assert admission.running == 1


async def test_a_cancelled_waiter_gives_its_turn_away() -> None:
    admission = Admission(places=1, max_waiting=2, max_wait_s=60)
    async with admission.admit():
        waiter = asyncio.create_task(admission.admit().__aenter__())
        await asyncio.sleep(0)
        waiter.cancel()
        await asyncio.gather(waiter, return_exceptions=True)
        assert admission.waiting == 0
    async with admission.admit():
        pass
