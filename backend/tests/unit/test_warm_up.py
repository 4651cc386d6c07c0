"""A warm-up that comes too late is tried again, within the time that a start may take."""

from __future__ import annotations

import asyncio
from types import SimpleNamespace
from typing import Any, cast

import pytest

from cantata.contract.data.errors import ChunkTimeout, RequestFailed
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.slot_policy import SlotPolicy


def build_policy(start_timeout_s: float, slots: int = 3) -> SlotPolicy:
    async def start() -> None:
        pass

    fake = SimpleNamespace(
        start=start,
        slots=slots,
        slots_in_use=0,
        quarantined=0,
        places=slots,
        frame_period_s=0.08,
        start_timeout_s=start_timeout_s,
        ready=True,
        on_places=lambda callback: None,
    )
    return SlotPolicy("model", cast(Orchestrator, fake))


class WarmUp:
    """Fails so often, then succeeds."""

    def __init__(self, failures: int, error: Exception) -> None:
        self.calls, self._failures, self._error = 0, failures, error

    async def __call__(self) -> None:
        self.calls += 1
        if self.calls <= self._failures:
            raise self._error


async def test_a_late_warm_up_is_tried_again(caplog: pytest.LogCaptureFixture) -> None:
    policy, warm_up = build_policy(600.0), WarmUp(2, ChunkTimeout("no output for 10 s"))
    await policy.start(warm_up)
    # Twice in vain, once alone, and with every slot.
    assert warm_up.calls == 2 + 1 + 3
    assert "no output for 10 s" in caplog.text
    assert policy.report.places == 3


async def test_a_slow_machine_warms_up_with_fewer_at_a_time() -> None:
    attempts: list[int] = []
    running = 0

    async def warm_up() -> None:
        nonlocal running
        running += 1
        try:
            await asyncio.sleep(0)  # all of the attempt have begun
            attempts.append(running)
            if running > 2:
                raise ChunkTimeout("no output for 10 s")
        finally:
            running -= 1

    policy = build_policy(600.0, slots=8)
    await policy.start(warm_up)
    assert attempts[-2:] == [2, 1], "of the last attempt, the second began beside the first"
    assert max(attempts) == 8
    assert policy.report.places == 8


@pytest.mark.parametrize(
    ("start_timeout_s", "error"),
    [(0.0, ChunkTimeout("no output for 10 s")), (600.0, RequestFailed("broken"))],
)
async def test_it_ends_at_the_deadline_and_at_any_other_fault(
    start_timeout_s: float, error: Any
) -> None:
    warm_up = WarmUp(100, error)
    with pytest.raises(type(error), match=str(error)):
        await build_policy(start_timeout_s).start(warm_up)
    assert warm_up.calls <= 2
