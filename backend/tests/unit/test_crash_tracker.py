"""Which deaths are blamed on requests, and how suspects begin."""

from __future__ import annotations

import asyncio
import signal
from typing import Any

import numpy as np
import pytest

from cantata.contract.data.errors import Quarantined, StageDied
from cantata.contract.data.request import PipelineRequest
from cantata.pipeline import crash_tracker
from cantata.pipeline.crash_tracker import CrashTracker
from cantata.pipeline.output_stream import CreditReturn, OpenRequest
from cantata.pipeline.stage_process import Death
from cantata.pipeline.watchdog import Hang
from stage_chunks import pcm_chunk

SOUND = "decoder.pcm"
NO_SAMPLES = np.zeros((0, 1), np.float32)
KILLED = -signal.SIGKILL


def stream(text: str, request_id: str = "") -> OpenRequest:
    inputs: Any = {"talker": {"text": text}}
    request = PipelineRequest(request_id or text, inputs)
    return OpenRequest(request, ["talker"], [SOUND], 10.0, CreditReturn({}, {}))


def death(
    *names: str, exit_code: int | None = 1, hang: Hang | None = None, alone: bool = False
) -> Death:
    return Death(
        StageDied("gone"), exit_code, hang, dict.fromkeys(names, 0), alone, frozenset(names)
    )


@pytest.fixture
def oom_kills(monkeypatch: pytest.MonkeyPatch) -> list[int]:
    """The kernel's counter."""
    count = [7]
    monkeypatch.setattr(crash_tracker, "_oom_kills", lambda: count[0])
    return count


@pytest.mark.parametrize(
    ("how", "blamed"),
    [
        (death("a"), True),
        (death("a", exit_code=0), True),
        (death("a", exit_code=-signal.SIGSEGV), True),
        (death("a", exit_code=KILLED, hang=Hang("waited", from_outside=False)), True),
        (death("a", exit_code=KILLED, alone=True), True),
        (death("a", exit_code=KILLED, hang=Hang("was stopped", from_outside=True)), False),
        (death("a", exit_code=KILLED), False),
        (death("a", exit_code=-signal.SIGTERM), False),
        (death("a", exit_code=None), False),
        (death(), False),
    ],
)
def test_only_what_a_process_did_itself_is_blamed(
    how: Death, blamed: bool, oom_kills: list[int]
) -> None:
    watched, open_streams = CrashTracker(), {"a": stream("a")}
    assert watched.record_death("talker", how, open_streams) == {}
    told = watched.record_death("talker", how, open_streams)
    assert [type(error) for error in told.values()] == [Quarantined] * blamed
    assert watched.quarantined == blamed


def test_a_death_that_several_stages_report_counts_once(oom_kills: list[int]) -> None:
    """Those of one process: the first report fails the request."""
    watched = CrashTracker()
    for expected in ({}, {"a": Quarantined}):
        open_streams = {"a": stream("a")}
        errors = watched.record_death("talker", death("a"), open_streams)
        assert {name: type(error) for name, error in errors.items()} == expected
        open_streams["a"].lost = True
        assert watched.record_death("talker", death("a"), open_streams) == {}


def test_a_kill_for_want_of_memory_is_blamed(oom_kills: list[int]) -> None:
    watched, open_streams = CrashTracker(), {"a": stream("a")}
    for _ in range(2):
        oom_kills[0] += 1
        told = watched.record_death("talker", death("a", exit_code=KILLED), open_streams)
    assert isinstance(told["a"], Quarantined)
    with pytest.raises(Quarantined):
        watched.check({"talker": {"text": "a"}})


async def test_suspects_begin_one_at_a_time_until_they_are_past_where_they_were() -> None:
    watched, names = CrashTracker(), ("a", "b", "poison")
    assert (
        watched.record_death("talker", death(*names), {name: stream(name) for name in names}) == {}
    )
    again = {name: stream(name) for name in names}
    begun = {name: asyncio.Event() for name in names}

    async def run(name: str) -> None:
        async with watched.admit(again[name]):
            begun[name].set()
            await asyncio.Event().wait()

    def make(name: str, frames: int) -> None:
        again[name].outputs[SOUND].arrive(pcm_chunk(name, 0, NO_SAMPLES, False), frames)
        watched.record_progress(again[name])

    tasks = [asyncio.create_task(run(name)) for name in names]
    await begun["a"].wait()
    make("a", 2)
    for _ in range(5):
        await asyncio.sleep(0)
    assert not begun["b"].is_set()
    make("a", 10)
    await begun["b"].wait()
    make("b", 20)
    await begun["poison"].wait()
    told = watched.record_death("talker", death(*names), again)
    assert list(told) == ["poison"]
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
    with pytest.raises(Quarantined):
        async with watched.admit(stream("poison")):
            pass
