"""Two real stage processes, one with vLLM: what a request may rely on, and what it leaves."""

from __future__ import annotations

import asyncio
import logging
import os
import signal
import time
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import numpy as np
import psutil
import pytest
import pytest_asyncio
from numpy.typing import NDArray

from cantata.config import Deployment, parse_deployment
from cantata.contract.data.errors import CantataError, ChunkTimeout, InvalidRequest, StageDied
from cantata.contract.data.request import PipelineRequest, SamplingOptions
from cantata.pipeline import watchdog
from cantata.pipeline.orchestrator import Orchestrator
from cantata.pipeline.stage_process import StageState
from orchestrated import count_held, orchestrating, speak
from timed import timed
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.faulty import FAULTY, HANG_FILE
from tiny_talker.inputs import TinyInput
from tiny_talker.plugin import PIPELINE

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 9


def describe(**settings: Any) -> dict[str, Any]:
    stages = {
        "talker": {"slots": SLOTS, "max_model_len": 128},
        "decoder": {"slots": SLOTS, "credit_s": 2.0},
    }
    return {"stages": stages, **settings}


def deployment(**settings: Any) -> Deployment:
    return parse_deployment(describe(**settings), PIPELINE)


@asynccontextmanager
async def started(folder: Path, **settings: Any) -> AsyncIterator[Orchestrator]:
    async with orchestrating(PIPELINE, folder, describe(**settings)) as orchestrator:
        yield orchestrator


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def pipeline(checkpoint: Path) -> AsyncIterator[Orchestrator]:
    async with started(checkpoint, chunk_timeout_s=20.0) as orchestrator:
        yield orchestrator


def request(number: int, suffix: str = "", frames: int | None = None) -> PipelineRequest:
    """Different text, length and seed for each number; the same for the same number."""
    random = np.random.default_rng(number)
    payload = TinyInput(
        text=random.integers(0, 40, 3 + number % 7).tolist(),
        max_frames=frames or 20 + 3 * number,
        min_frames=frames or 20 + 3 * number,
        sampling=SamplingOptions(seed=number, temperature=0.9),
    )
    return PipelineRequest(f"r{number}{suffix}", {"talker": payload})


async def speak_later(
    orchestrator: Orchestrator, request: PipelineRequest, delay_s: float
) -> NDArray[np.float32]:
    await asyncio.sleep(delay_s)
    return await speak(orchestrator, request)


async def test_stages_are_named_processes_that_tell_what_they_serve(
    pipeline: Orchestrator,
) -> None:
    names = {psutil.Process(stage.pid).cmdline()[0] for stage in pipeline.stages.values()}
    assert names == {"cantata:talker:0", "cantata:decoder:0"}
    assert pipeline.ready
    assert pipeline.slots == SLOTS
    assert pipeline.sound_capacity.sample_rate == 50


async def test_each_request_is_the_same_bits_alone_and_in_company(pipeline: Orchestrator) -> None:
    numbers = range(8)
    alone = [await speak(pipeline, request(n)) for n in numbers]
    assert len({a.tobytes() for a in alone}) == len(alone)
    together = await asyncio.gather(*(speak(pipeline, request(n, "t")) for n in numbers))
    staggered = await asyncio.gather(
        *(speak_later(pipeline, request(n, "s"), 0.01 * n) for n in numbers)
    )
    for number in numbers:
        assert np.array_equal(alone[number], together[number]), number
        assert np.array_equal(alone[number], staggered[number]), number
    assert await count_held(pipeline) == {}


async def test_an_abort_changes_no_other_request_s_samples(pipeline: Orchestrator) -> None:
    async def leave_early() -> None:
        async with pipeline.open(request(50, frames=100)) as stream:
            async for _ in pipeline.sound(stream):
                return

    alone = [await speak(pipeline, request(n)) for n in range(7)]
    _, *others = await asyncio.gather(
        leave_early(), *(speak(pipeline, request(n, "x")) for n in range(7))
    )
    for expected, got in zip(alone, others, strict=True):
        assert np.array_equal(expected, got)  # type: ignore[arg-type]
    assert await count_held(pipeline) == {}


async def test_cancellation_has_freed_everything_when_it_is_awaited(
    pipeline: Orchestrator,
) -> None:
    async def consume(number: int, arrived: asyncio.Event) -> None:
        async with pipeline.open(request(number, "c", frames=100)) as stream:
            async for _ in pipeline.sound(stream):
                arrived.set()

    for at_once in (False, True):  # before the first sample as well as in the middle
        events = [asyncio.Event() for _ in range(8)]
        tasks = [asyncio.create_task(consume(n, e)) for n, e in enumerate(events)]
        await (asyncio.sleep(0) if at_once else asyncio.gather(*(e.wait() for e in events)))
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)
        assert await count_held(pipeline) == {}


async def test_a_rejected_payload_fails_its_own_request_only(pipeline: Orchestrator) -> None:
    expected = await speak(pipeline, request(3))
    bad = PipelineRequest("bad", {"talker": TinyInput(text=[], max_frames=5)})
    failure, good = await asyncio.gather(
        speak(pipeline, bad), speak(pipeline, request(3, "again")), return_exceptions=True
    )
    assert isinstance(failure, InvalidRequest)
    assert failure.param == "text"
    assert np.array_equal(good, expected)  # type: ignore[arg-type]
    assert await count_held(pipeline) == {}


async def test_a_client_that_stops_reading_delays_no_other_stream(pipeline: Orchestrator) -> None:
    expected = await speak(pipeline, request(2))
    async with pipeline.open(request(60, frames=100)) as stream:
        chunks = pipeline.sound(stream)
        taken = [(await anext(chunks)).payload.samples]
        assert np.array_equal(await speak(pipeline, request(2, "beside")), expected)
        # Two seconds of credit are 100 samples, 25 frames: the rest of the 100 frames waits.
        decoder, waiting = pipeline.stages["decoder"], {"requests": 1, "queued_frames": 75}
        async with asyncio.timeout(30):
            while await decoder.get_counts() != waiting:
                pass  # each answer follows a step of the decoder
        assert np.array_equal(
            await speak(pipeline, request(3, "beside")), await speak(pipeline, request(3))
        )
        assert await decoder.get_counts() == waiting
        taken.extend([new.payload.samples async for new in chunks])
    assert sum(map(len, taken)) == 400
    assert np.array_equal(np.concatenate(taken), await speak(pipeline, request(60, "b", 100)))


async def test_batch_mode_gives_the_same_samples_in_one_chunk(
    pipeline: Orchestrator, checkpoint: Path
) -> None:
    async with started(checkpoint, async_chunk=False) as batch:
        for number in (1, 4):
            async with batch.open(request(number)) as stream:
                chunks = [new.payload.samples async for new in batch.sound(stream)]
            assert len(chunks) == 1
            assert np.array_equal(chunks[0], await speak(pipeline, request(number, "async")))
        async with batch.open(request(5, frames=100)):
            pass  # left before its end: nothing may stay held back
        assert await count_held(batch) == {}


async def test_silence_from_the_pipeline_fails_the_request_in_time(
    checkpoint: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(watchdog, "STOPPED_S", 60.0)  # so its process is not restarted
    async with started(checkpoint, chunk_timeout_s=3.0) as orchestrator:
        expected = await speak(orchestrator, request(1))
        talker = orchestrator.stages["talker"].pid
        assert talker is not None
        os.kill(talker, signal.SIGSTOP)
        try:
            async with orchestrator.open(request(2)) as stream:
                with pytest.raises(ChunkTimeout):
                    await anext(orchestrator.sound(stream))
                os.kill(talker, signal.SIGCONT)  # leaving waits for its answer to the abort
        finally:
            os.kill(talker, signal.SIGCONT)
        assert np.array_equal(await speak(orchestrator, request(1, "after")), expected)
        assert await count_held(orchestrator) == {}


@pytest.mark.parametrize("victim", ["decoder", "talker"])
async def test_a_stage_that_dies_takes_its_requests_only_and_comes_back(
    checkpoint: Path, victim: str
) -> None:
    async with started(checkpoint) as orchestrator:
        expected = await speak(orchestrator, request(1))
        survivor = "talker" if victim == "decoder" else "decoder"
        survivor_pid = orchestrator.stages[survivor].pid
        victim_pid = orchestrator.stages[victim].pid
        assert victim_pid is not None

        async def be_there(number: int) -> CantataError:
            try:
                async with orchestrator.open(request(number, frames=100)) as stream:
                    async for _ in orchestrator.sound(stream):
                        if psutil.pid_exists(victim_pid):
                            os.kill(victim_pid, signal.SIGKILL)
            except CantataError as error:
                return error
            raise AssertionError("the request outlived its stage")

        async with asyncio.timeout(60):
            errors = await asyncio.gather(be_there(1), be_there(2))
        # The error is the death, not the silence after which any request fails.
        assert [type(error) for error in errors] == [StageDied, StageDied]
        assert not orchestrator.ready

        async with asyncio.timeout(60):
            while not orchestrator.ready:  # noqa: ASYNC110 (there is no event to wait for)
                await asyncio.sleep(0.05)
        assert orchestrator.stages[survivor].pid == survivor_pid
        assert np.array_equal(await speak(orchestrator, request(1, "after")), expected)
        assert await count_held(orchestrator) == {}


@timed(one_sided=True)
async def test_an_idle_pipeline_ends_at_once(checkpoint: Path) -> None:
    orchestrator = Orchestrator(PIPELINE, checkpoint, deployment(), logging.WARNING)
    await orchestrator.start()
    began_s = time.monotonic()
    await orchestrator.stop(deadline_s=10)
    assert time.monotonic() - began_s < 1.0


async def test_a_start_that_hangs_ends_at_its_deadline(tmp_path: Path) -> None:
    save_tiny_checkpoint(tmp_path)
    (tmp_path / HANG_FILE).touch()
    stages = {"talker": {"max_model_len": 128}, "decoder": {}}
    raw = {"stages": stages, "start_timeout_s": 2.0}
    orchestrator = Orchestrator(FAULTY, tmp_path, parse_deployment(raw, FAULTY), logging.CRITICAL)
    with pytest.raises(StageDied, match="not ready within 2 s"):
        await orchestrator.start()
    pids = [stage.pid for stage in orchestrator.stages.values()]
    assert not any(pid and psutil.pid_exists(pid) for pid in pids)


async def test_a_stage_that_cannot_start_says_why_and_leaves_no_process(tmp_path: Path) -> None:
    orchestrator = Orchestrator(PIPELINE, tmp_path, deployment(), logging.CRITICAL)
    with pytest.raises(StageDied, match="talker"):
        await orchestrator.start()
    assert {stage.state for stage in orchestrator.stages.values()} == {StageState.ENDED}
    pids = [stage.pid for stage in orchestrator.stages.values()]
    assert not any(pid and psutil.pid_exists(pid) for pid in pids)
