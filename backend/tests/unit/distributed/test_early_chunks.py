"""Chunks that overtake their request's registration."""

from __future__ import annotations

import asyncio

import numpy as np
import pytest

from cantata.contract.data.chunks import Chunk, Payload, Rows
from cantata.distributed.stages import unix_edges
from cantata.distributed.stages.unix_edges import EarlyChunkBuffer
from cantata.ipc.encoded import EncodedChunks

LIMIT_S = 20.0


class Stage:
    """What reached it, in order."""

    def __init__(self) -> None:
        self.got: list[tuple[str, int]] = []
        self.room = asyncio.Event()
        self.room.set()
        self.early_chunks = EarlyChunkBuffer(self.take)
        self._news = asyncio.Event()

    async def take(self, encoded: EncodedChunks) -> None:
        await self.room.wait()
        self.got += [(chunk.request_id, chunk.index) for chunk in encoded.chunks()]
        self._news.set()

    async def has(self, *wanted: tuple[str, int]) -> None:
        async with asyncio.timeout(LIMIT_S):
            while len(self.got) < len(wanted):
                self._news.clear()
                await self._news.wait()
        assert self.got == list(wanted)


def chunk(request_id: str, index: int) -> Chunk[Payload]:
    return Chunk(request_id, "rows", index, Rows(np.zeros((1, 1), np.float32)), final=False)


async def test_a_chunk_waits_for_its_request_and_holds_up_no_other() -> None:
    stage = Stage()
    stage.early_chunks.registered("known")
    await stage.early_chunks.put(EncodedChunks.of([chunk("late", 0), chunk("known", 0)]))
    await stage.early_chunks.put(EncodedChunks.of([chunk("late", 1), chunk("known", 1)]))
    assert stage.got == [("known", 0), ("known", 1)]
    assert stage.early_chunks.parked == 2
    stage.early_chunks.registered("late")
    await stage.has(("known", 0), ("known", 1), ("late", 0), ("late", 1))
    assert stage.early_chunks.parked == 0


async def test_nothing_overtakes_what_waits() -> None:
    """Not even what comes between the registration and the stage's room for the rest."""
    stage = Stage()
    stage.early_chunks.registered("full")
    await stage.early_chunks.put(EncodedChunks.of([chunk("late", 0)]))
    stage.room.clear()
    blocked = asyncio.create_task(stage.early_chunks.put(EncodedChunks.of([chunk("full", 0)])))
    stage.early_chunks.registered("late")
    behind = asyncio.create_task(stage.early_chunks.put(EncodedChunks.of([chunk("late", 1)])))
    stage.room.set()
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(blocked, behind)
    await stage.has(("full", 0), ("late", 0), ("late", 1))


async def test_what_nobody_registers_goes_on_after_a_while(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The stage drops it, and nothing is kept."""
    monkeypatch.setattr(unix_edges, "MAX_WAIT_S", 0.01)
    stage = Stage()
    await stage.early_chunks.put(EncodedChunks.of([chunk("stray", 0)]))
    await stage.has(("stray", 0))
    assert stage.early_chunks.parked == 0


async def test_there_is_a_bound(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(unix_edges, "MAX_PARKED", 3)
    stage = Stage()
    await stage.early_chunks.put(EncodedChunks.of([chunk(f"r{number}", 0) for number in range(4)]))
    await stage.has(("r0", 0))
    assert stage.early_chunks.parked == 3
    stage.early_chunks.close()
    assert stage.early_chunks.parked == 0
