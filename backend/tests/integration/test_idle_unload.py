"""A model that nobody uses leaves memory, and comes back without losing a request."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import pytest_asyncio

from cantata.contract.data.errors import StageDied
from cantata.contract.data.request import SpeechRequest
from tiny_talker.serving import TinyServer, tiny_server

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

IDLE_S = 0.5
LIMIT_S = 120.0
TEXT = "one two three"


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TinyServer]:
    folder = tmp_path_factory.mktemp("checkpoint")
    async with tiny_server(folder, slots=2, idle_unload_s=IDLE_S) as server:
        yield server


@pytest.fixture
def checkpoint(server: TinyServer) -> Path:
    return server.model.orchestrator._supervisor._checkpoint


async def speak(server: TinyServer, text: str = TEXT) -> bytes:
    async with server.model.run(SpeechRequest(text, "tiny")) as utterance:
        return np.concatenate([chunk.samples async for chunk in utterance]).tobytes()


def find_pids(server: TinyServer) -> list[int]:
    return [stage.pid or 0 for stage in server.model.orchestrator.stages.values()]


async def until(condition: Callable[[], bool]) -> None:
    async with asyncio.timeout(LIMIT_S):
        while not condition():  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def until_unloaded(server: TinyServer) -> None:
    """Return once no stage has a process."""
    await until(
        lambda: server.model.orchestrator.unloaded and not any(map(is_running, find_pids(server)))
    )


def is_running(pid: int) -> bool:
    try:
        return psutil.Process(pid).status() != psutil.STATUS_ZOMBIE
    except psutil.NoSuchProcess:
        return False


async def test_its_processes_end_and_the_next_requests_are_served(server: TinyServer) -> None:
    expected = await speak(server)
    await until_unloaded(server)
    descriptors = psutil.Process().num_fds()
    for _ in range(3):
        await until_unloaded(server)
        before = find_pids(server)
        # More than there are slots, and all at once.
        assert set(await asyncio.gather(*(speak(server) for _ in range(4)))) == {expected}
        assert not set(before) & set(find_pids(server))
    await until_unloaded(server)
    await until(lambda: psutil.Process().num_fds() <= descriptors)
    assert not sum(stage.restarts for stage in server.model.orchestrator.restarts.values())


async def test_it_counts_as_ready_all_the_while(server: TinyServer) -> None:
    await until_unloaded(server)
    async with httpx.AsyncClient(base_url=server.url, timeout=LIMIT_S) as http:
        assert (await http.get("/ready")).status_code == 200
        health = (await http.get("/health")).json()
        assert health["status"] == "ok"
        assert all(one["unloaded"] and not one["alive"] for one in health["stages"])
        assert 'cantata_stage_unloaded{model="tiny",stage="talker"} 1.0' in (
            (await http.get("/metrics")).text
        )
        spoken = await http.post("/v1/audio/speech", json={"input": TEXT, "voice": "tiny"})
        assert spoken.status_code == 200
        health = (await http.get("/health")).json()
        assert all(one["alive"] and not one["unloaded"] for one in health["stages"])


async def test_who_leaves_while_it_loads_leaves_nothing(server: TinyServer) -> None:
    await until_unloaded(server)
    task = asyncio.create_task(speak(server))
    await until(lambda: any(map(is_running, find_pids(server))))
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    await until_unloaded(server)
    assert server.model.admission.running == 0


async def test_a_load_that_fails_is_told_and_the_next_one_works(
    server: TinyServer, checkpoint: Path
) -> None:
    expected = await speak(server)
    await until_unloaded(server)
    away = await asyncio.to_thread(checkpoint.rename, checkpoint.with_name("away"))
    try:
        with pytest.raises(StageDied):
            await speak(server)
    finally:
        await asyncio.to_thread(away.rename, checkpoint)
    assert await speak(server) == expected
