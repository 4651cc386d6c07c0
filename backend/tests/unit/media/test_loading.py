"""Loading files: turns in which they are decoded."""

from __future__ import annotations

import asyncio
import threading

import pytest

from cantata.media.loading import MediaLoader


async def test_a_turn_lasts_until_its_thread_is_done_even_if_its_client_has_left() -> None:
    loader = MediaLoader(None)
    may_end, begun = threading.Event(), [threading.Event(), threading.Event()]

    def slow(number: int) -> None:
        begun[number].set()
        assert may_end.wait(60)
        raise ValueError("nobody asks for this")

    try:
        leaving = [asyncio.create_task(loader.decode(lambda n=n: slow(n))) for n in (0, 1)]  # type: ignore[misc]
        for one in begun:
            assert await asyncio.to_thread(one.wait, 60)
        for task in leaving:
            task.cancel()
        assert {type(end) for end in await asyncio.gather(*leaving, return_exceptions=True)} == {
            asyncio.CancelledError
        }
        third = asyncio.create_task(loader.decode(lambda: may_end.is_set()))
        # Work that has no turn to wait for is done meanwhile.
        for _ in range(5):
            await asyncio.to_thread(int)
        assert not third.done()
    finally:
        may_end.set()
    # It ran only after one of the others had ended.
    assert await third


async def test_errors_of_the_work_are_the_callers() -> None:
    def fail() -> None:
        raise ValueError("broken")

    loader = MediaLoader(None)
    for _ in range(3):
        with pytest.raises(ValueError, match="broken"):
            await loader.decode(fail)
