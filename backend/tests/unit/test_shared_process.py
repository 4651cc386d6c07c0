"""Stages of one process: who reports its end first."""

from __future__ import annotations

import asyncio

import pytest

from cantata.pipeline.shared_process import SharedProcess

FOREVER_S = 60.0


async def test_an_idle_stage_waits_for_the_report_of_one_that_was_at_work() -> None:
    process = SharedProcess(("talker", "decoder"))
    process.note_end("decoder")  # it was idle
    waiting = asyncio.create_task(process.wait_for_reports(FOREVER_S))
    done, _ = await asyncio.wait([waiting], timeout=0.05)
    assert not done
    process.note_end("talker")
    await asyncio.wait_for(waiting, FOREVER_S / 2)


@pytest.mark.parametrize("stages", [("talker",), ("talker", "decoder")])
async def test_idle_stages_wait_for_each_other_alone(stages: tuple[str, ...]) -> None:
    process = SharedProcess(stages)
    for name in stages:
        process.note_end(name)
    await asyncio.wait_for(process.wait_for_reports(FOREVER_S), FOREVER_S / 2)


async def test_a_stage_that_never_hears_of_the_end_delays_the_others_for_a_time_only() -> None:
    process = SharedProcess(("talker", "decoder"))
    process.note_end("decoder")
    await process.wait_for_reports(0.01)


async def test_a_stage_that_gives_up_is_not_waited_for() -> None:
    process = SharedProcess(("talker", "decoder"))
    process.note_end("decoder")
    process.give_up("talker")
    await asyncio.wait_for(process.wait_for_reports(FOREVER_S), FOREVER_S / 2)
