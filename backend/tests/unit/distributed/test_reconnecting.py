"""How soon a lost link is connected again."""

from __future__ import annotations

import asyncio
import time

import pytest

from cantata.distributed.link import connecting
from cantata.distributed.link.errors import ConnectionClosed, LinkLost

PAUSES_S = (0.0, 0.02, 0.04)


async def measure_seconds(attempts: int, *, is_connected: bool) -> float:
    """Until so many links were lost at once, or never came about."""
    crash_tracker: list[LinkLost] = []
    enough = asyncio.Event()

    async def once() -> LinkLost:
        loss = ConnectionClosed("it is stopping")
        if is_connected:
            return loss
        raise loss

    def on_loss(loss: LinkLost) -> None:
        crash_tracker.append(loss)
        if len(crash_tracker) == attempts:
            enough.set()

    began_s = time.monotonic()
    keeping_it = asyncio.create_task(connecting.reconnect_forever(once, on_loss))
    async with asyncio.timeout(60):
        await enough.wait()
    keeping_it.cancel()
    await asyncio.wait({keeping_it})
    return time.monotonic() - began_s


@pytest.mark.parametrize("is_connected", [True, False])
async def test_an_end_that_does_not_stay_is_asked_less_and_less_often(
    is_connected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(connecting, "_PAUSES_S", PAUSES_S)
    assert await measure_seconds(6, is_connected=is_connected) > 0.9 * (0.0 + 0.02 + 3 * 0.04)


async def test_a_link_that_has_lasted_is_connected_again_at_once(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(connecting, "_PAUSES_S", (0.0, 60.0))
    monkeypatch.setattr(connecting, "_SETTLED_S", 0.0)
    assert await measure_seconds(6, is_connected=True) < 60.0
