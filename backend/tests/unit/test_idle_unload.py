"""A pipeline that nobody uses is unloaded, and loaded again for whoever comes next."""

from __future__ import annotations

import asyncio

import pytest

from cantata.contract.data.errors import StageDied
from cantata.pipeline.idle_unload import IdleUnloader

SOON_S = 0.01
LONG_S = 600.0
LIMIT_S = 30.0


class FakePipeline:
    """Counts loads and unloads; both wait until they may end."""

    def __init__(self) -> None:
        self.ready = True
        self.loads = 0
        self.unloads = 0
        self.may_load, self.may_unload = asyncio.Event(), asyncio.Event()
        self.may_load.set()
        self.may_unload.set()
        self.changed = asyncio.Event()
        self.error: StageDied | None = None

    @property
    def counts(self) -> tuple[int, int]:
        """Loads and unloads so far."""
        return self.loads, self.unloads

    async def load(self) -> None:
        self.loads += 1
        self.changed.set()
        await self.may_load.wait()
        if self.error is not None:
            raise self.error
        self.ready = True

    async def unload(self) -> None:
        self.unloads += 1
        self.ready = False
        self.changed.set()
        await self.may_unload.wait()

    async def until(self, loads: int = 0, unloads: int = 0) -> None:
        async with asyncio.timeout(LIMIT_S):
            while self.loads < loads or self.unloads < unloads:
                self.changed.clear()
                await self.changed.wait()


async def use(unloader: IdleUnloader) -> None:
    async with unloader.use():
        pass


async def unload(pipeline: FakePipeline) -> IdleUnloader:
    """What has unloaded a pipeline that was used once."""
    unloader = IdleUnloader(["talker"], pipeline, SOON_S)
    await use(unloader)
    await pipeline.until(unloads=1)
    return unloader


async def test_it_is_unloaded_after_the_last_use_and_loaded_for_the_next() -> None:
    pipeline = FakePipeline()
    unloader = IdleUnloader(["talker"], pipeline, SOON_S)
    async with unloader.use():
        async with unloader.use():
            pass
        await asyncio.sleep(5 * SOON_S)
        assert not pipeline.unloads, "somebody uses it"
    await pipeline.until(unloads=1)
    assert unloader.unloaded
    async with unloader.use():
        assert not unloader.unloaded
        assert pipeline.ready
    assert pipeline.loads == 1
    await pipeline.until(unloads=2)
    await unloader.stop()


async def test_it_stays_if_nobody_says_how_long() -> None:
    pipeline = FakePipeline()
    unloader = IdleUnloader(["talker"], pipeline, None)
    await use(unloader)
    await asyncio.sleep(5 * SOON_S)
    assert not pipeline.unloads
    await unloader.stop()


async def test_all_who_come_meanwhile_wait_for_one_load() -> None:
    pipeline = FakePipeline()
    unloader = IdleUnloader(["talker"], pipeline, SOON_S)
    await use(unloader)
    pipeline.may_unload.clear()
    await pipeline.until(unloads=1)
    users = [asyncio.create_task(use(unloader)) for _ in range(3)]
    await asyncio.sleep(0)
    assert not pipeline.loads, "first the old processes end"
    pipeline.may_load.clear()
    pipeline.may_unload.set()
    await pipeline.until(loads=1)
    users[0].cancel()  # others still wait
    await asyncio.wait(users[:1])
    pipeline.may_load.set()
    await asyncio.gather(*users[1:])
    assert pipeline.counts == (1, 1)
    await unloader.stop()


async def test_what_was_loaded_for_somebody_who_left_is_unloaded_again() -> None:
    pipeline = FakePipeline()
    unloader = await unload(pipeline)
    pipeline.may_load.clear()
    user = asyncio.create_task(use(unloader))
    await pipeline.until(loads=1)
    user.cancel()
    await asyncio.wait([user])
    pipeline.may_load.set()
    await pipeline.until(unloads=2)
    await unloader.stop()


async def test_a_load_that_fails_is_told_and_tried_again() -> None:
    pipeline = FakePipeline()
    unloader = await unload(pipeline)
    pipeline.error = StageDied("no memory")
    with pytest.raises(StageDied, match="no memory"):
        await use(unloader)
    assert unloader.unloaded
    pipeline.error = None
    await use(unloader)
    assert pipeline.loads == 2
    await unloader.stop()


async def test_what_is_being_repaired_is_unloaded_later() -> None:
    pipeline = FakePipeline()
    unloader = IdleUnloader(["talker"], pipeline, SOON_S)
    pipeline.ready = False
    await use(unloader)
    await asyncio.sleep(5 * SOON_S)
    assert not pipeline.unloads
    pipeline.ready = True
    await pipeline.until(unloads=1)
    await unloader.stop()


async def test_nothing_is_loaded_by_a_server_that_stops() -> None:
    pipeline = FakePipeline()
    unloader = await unload(pipeline)
    pipeline.may_load.clear()
    user = asyncio.create_task(use(unloader))
    await pipeline.until(loads=1)
    await unloader.stop()
    with pytest.raises(StageDied, match="stopping"):
        await user
    with pytest.raises(StageDied, match="stopping"):
        await use(unloader)
