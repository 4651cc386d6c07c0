"""Requests are freed in time, whatever a stage does."""

from __future__ import annotations

import asyncio
from dataclasses import dataclass, field
from typing import cast

import pytest

from cantata.contract.data.request import PipelineRequest
from cantata.contract.process.messages import Abort
from cantata.pipeline import aborts as aborts_module
from cantata.pipeline.aborts import Aborts
from cantata.pipeline.output_stream import CreditReturn, OpenRequest
from cantata.pipeline.stage_process import StageState
from cantata.pipeline.supervision import Supervisor


@dataclass
class Stage:
    """Takes an abort once there is room for it."""

    room: asyncio.Event = field(default_factory=asyncio.Event)
    told: list[Abort] = field(default_factory=list)
    state: StageState = StageState.READY

    async def send(self, message: Abort) -> None:
        await self.room.wait()
        self.told.append(message)


@dataclass
class Stages:
    stages: dict[str, Stage]


async def test_a_stage_that_takes_nothing_holds_up_no_other_and_not_for_ever(
    monkeypatch: pytest.MonkeyPatch, caplog: pytest.LogCaptureFixture
) -> None:
    monkeypatch.setattr(aborts_module, "DEADLINE_S", 0.05)
    full, free = Stage(), Stage()
    free.room.set()
    opened = OpenRequest(PipelineRequest("r", {}), ["full", "free"], [], 60.0, CreditReturn({}, {}))
    async with asyncio.timeout(60):
        await Aborts(cast(Supervisor, Stages({"full": full, "free": free}))).free(opened)
    assert free.told == [Abort(("r",))]
    assert full.told == []
    assert "no answer to its abort from" in caplog.text
