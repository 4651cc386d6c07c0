"""Several streams as one."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncGenerator
from contextlib import aclosing

import pytest

from cantata.utils.merge_streams import merge_streams

pytestmark = pytest.mark.asyncio


class Source:
    """A stream that is fed by the test."""

    def __init__(self) -> None:
        self.given: asyncio.Queue[object] = asyncio.Queue()
        self.taken = 0
        self.closed = False

    async def stream(self) -> AsyncGenerator[object, None]:
        try:
            while (item := await self.given.get()) is not None:
                if isinstance(item, Exception):
                    raise item
                self.taken += 1
                yield item
        finally:
            self.closed = True


async def test_elements_come_in_the_order_in_which_they_are_made() -> None:
    one, other = Source(), Source()
    async with aclosing(merge_streams(one.stream(), other.stream())) as both:
        for source, item in ((one, 1), (other, 2), (other, 3), (one, 4)):
            source.given.put_nowait(item)
            assert await anext(both) == item
        one.given.put_nowait(None)
        other.given.put_nowait(5)
        assert await anext(both) == 5
        other.given.put_nowait(None)
        assert [item async for item in both] == []
    assert one.closed
    assert other.closed


async def test_of_each_at_most_one_is_taken_ahead() -> None:
    one, other = Source(), Source()
    for item in range(5):
        one.given.put_nowait(item)
    async with aclosing(merge_streams(one.stream(), other.stream())) as both:
        await anext(both)
        await asyncio.sleep(0)
        assert one.taken <= 2


async def test_an_error_closes_the_others() -> None:
    one, other = Source(), Source()
    one.given.put_nowait(ValueError("broken"))
    with pytest.raises(ValueError, match="broken"):
        _ = [item async for item in merge_streams(one.stream(), other.stream())]
    assert other.closed


async def test_leaving_closes_all() -> None:
    one, other = Source(), Source()
    one.given.put_nowait(1)
    async with aclosing(merge_streams(one.stream(), other.stream())) as both:
        assert await anext(both) == 1
    assert one.closed
    assert other.closed
