"""A codec stage in its talker's process: the same samples, and both stages as if apart."""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import pytest_asyncio

from cantata.contract.data.errors import CantataError, Quarantined, StageDied
from cantata.contract.data.request import PipelineRequest, SamplingOptions
from cantata.contract.model.pipeline import PipelineSpec
from cantata.pipeline.orchestrator import Orchestrator
from orchestrated import count_held, orchestrating, speak
from tiny_talker.checkpoint import NUM_CODEBOOKS, save_tiny_checkpoint
from tiny_talker.faulty import FAULTS, FAULTY, MARK
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import PIPELINE, pipeline_with

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 6
MISSING = pipeline_with("TinyTalker", "no_such_decoder")


@asynccontextmanager
async def started(
    folder: Path, *, together: bool, pipeline: PipelineSpec = PIPELINE, **settings: Any
) -> AsyncIterator[Orchestrator]:
    stages = {
        "talker": {"slots": SLOTS, "max_model_len": 128},
        "decoder": {"slots": SLOTS, "credit_s": 2.0, "colocate": "talker" if together else None},
    }
    async with orchestrating(pipeline, folder, {"stages": stages, **settings}) as orchestrator:
        yield orchestrator


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def apart(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    async with started(checkpoint, together=False) as orchestrator:
        yield orchestrator


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def together(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    async with started(checkpoint, together=True) as orchestrator:
        yield orchestrator


def request(
    number: int, suffix: str = "", frames: int = 0, fault: str | None = None
) -> PipelineRequest:
    random = np.random.default_rng(number)
    length = frames or 20 + 3 * number
    payload = TinyInput(
        text=random.integers(0, 40, 3 + number % 7).tolist(),
        max_frames=length,
        min_frames=length,
        context=None if fault is None else [[MARK + list(FAULTS).index(fault)] * NUM_CODEBOOKS],
        sampling=SamplingOptions(seed=number, temperature=0.9),
    )
    return PipelineRequest(f"r{number}{suffix}", {"talker": payload})


def process(orchestrator: Orchestrator) -> psutil.Process:
    """The one that all stages share."""
    (pid,) = {stage.pid for stage in orchestrator.stages.values()}
    return psutil.Process(pid)


async def test_they_share_a_process_that_has_both_names(together: Orchestrator) -> None:
    assert process(together).cmdline()[0] == "cantata:talker+decoder:0"


async def test_the_samples_are_those_of_two_processes(
    apart: Orchestrator, together: Orchestrator
) -> None:
    numbers = range(SLOTS)
    expected = [await speak(apart, request(number)) for number in numbers]
    assert len({samples.tobytes() for samples in expected}) == len(expected)
    alone = [await speak(together, request(number)) for number in numbers]
    crowd = await asyncio.gather(*(speak(together, request(number, "c")) for number in numbers))
    for number in numbers:
        np.testing.assert_array_equal(alone[number], expected[number])
        np.testing.assert_array_equal(crowd[number], expected[number])
    assert await count_held(together) == {}


async def test_each_stage_has_counts_and_figures_of_its_own(together: Orchestrator) -> None:
    async with together.open(request(1, "counted", frames=100)) as stream:
        await anext(together.sound(stream))
        counts = {name: await stage.get_counts() for name, stage in together.stages.items()}
        assert counts["talker"]["slots"] == counts["decoder"]["requests"] == 1
    pongs = [stage.last_pong for stage in together.stages.values()]
    steps = [sum(pong.steps.seconds.counts) for pong in pongs if pong is not None]
    assert len(steps) == 2
    assert all(steps)
    # Memory cannot be told apart, and is counted once.
    memory = {name: stage.rss_bytes for name, stage in together.stages.items()}
    assert memory["talker"] > 0
    assert memory["decoder"] == 0


async def test_a_request_that_is_left_is_freed_in_both(together: Orchestrator) -> None:
    async with together.open(request(2, "left", frames=100)) as stream:
        await anext(together.sound(stream))
        assert set(await count_held(together)) >= {"talker.slots", "decoder.requests"}
    assert await count_held(together) == {}


async def test_an_end_of_the_process_is_one_of_both_stages_and_both_come_back(
    checkpoint: Path,
) -> None:
    async with started(checkpoint, together=True) as orchestrator:
        expected = await speak(orchestrator, request(1))
        before = process(orchestrator)

        async def be_there(number: int) -> CantataError:
            try:
                async with orchestrator.open(request(number, frames=100)) as stream:
                    async for _ in orchestrator.sound(stream):
                        if before.is_running():
                            os.kill(before.pid, signal.SIGKILL)
            except CantataError as error:
                return error
            raise AssertionError("the request outlived its stages")

        async with asyncio.timeout(60):
            errors = await asyncio.gather(be_there(1), be_there(2))
            assert [type(error) for error in errors] == [StageDied, StageDied]
            await orchestrator.wait_until_ready(60)
        assert process(orchestrator).pid != before.pid
        assert {name: h.restarts for name, h in orchestrator.restarts.items()} == {
            "talker": 1,
            "decoder": 1,
        }
        np.testing.assert_array_equal(await speak(orchestrator, request(1, "after")), expected)
        assert await count_held(orchestrator) == {}


async def test_both_leave_memory_while_nobody_needs_them_and_come_back(checkpoint: Path) -> None:
    async with started(checkpoint, together=True, idle_unload_s=0.2) as orchestrator:
        expected = await speak(orchestrator, request(1))
        before = process(orchestrator)
        async with asyncio.timeout(60):
            while not orchestrator.unloaded or before.is_running():  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        np.testing.assert_array_equal(await speak(orchestrator, request(1, "after")), expected)
        assert not any(history.restarts for history in orchestrator.restarts.values())


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("fault", ["raise", "exit", "spin"])
async def test_a_fault_of_the_codec_ends_both_and_is_that_requests(
    checkpoint: Path, fault: str
) -> None:
    """The second time it is rejected; another request is not."""
    async with started(checkpoint, together=True, pipeline=FAULTY) as orchestrator:
        before = process(orchestrator)
        innocent = await speak(orchestrator, request(2))
        for expected in (StageDied, Quarantined):
            with pytest.raises(expected):
                await speak(orchestrator, request(1, "bad", fault=fault))
            async with asyncio.timeout(90):
                await orchestrator.wait_until_ready(90)
        assert not before.is_running()
        assert [history.restarts for history in orchestrator.restarts.values()] == [2, 2]
        assert orchestrator.quarantined == 1
        np.testing.assert_array_equal(await speak(orchestrator, request(2, "after")), innocent)
        assert await count_held(orchestrator) == {}


async def test_a_stage_that_cannot_be_had_keeps_neither(checkpoint: Path) -> None:
    with pytest.raises(StageDied, match=r"cannot start: .*no_such_decoder"):
        async with started(checkpoint, together=True, pipeline=MISSING):
            raise AssertionError("it must not start")
