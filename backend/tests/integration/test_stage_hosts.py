"""A pipeline whose talker runs on a stage host: the host is killed, stopped and started again, its
cable is pulled, its stage is killed. Requests end with a typed error, the rest of the server goes
on, and afterwards the samples are the same.
"""

from __future__ import annotations

import asyncio
import os
import signal
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import numpy as np
import psutil
import pytest
import pytest_asyncio

import namespaces
from cantata.config import parse_deployment
from cantata.config.plugins import LocatedModel
from cantata.contract.data.errors import StageDied
from cantata.contract.data.request import SpeechRequest
from cantata.distributed.key import LinkKey
from cantata.distributed.stages import pipeline as pipeline_module
from cantata.distributed.stages.pipeline import StagesOnHosts
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.service import PipelineService, create_service
from host_process import KEY, HostProcess
from process_tree import find_descendants
from stage_hosts import placed, stage_host
from stall_free_clock import a_clock_that_leaves_out_stalls
from tiny_talker.checkpoint import save_tiny_checkpoint
from tiny_talker.plugin import AUDIBLE
from tiny_talker.stage_host import LOUD

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

SLOTS = 4
WITHIN_S = 2.0
"""From a fault to the error."""
LIMIT_S = 240.0
"""For anything on a busy machine."""
TEXT = "One two three four five six seven eight nine ten."
"""50 frames of 0.8 s: far more than links and decoders hold for a listener that does not read."""
HEARD = 3
"""Chunks before a fault."""


@dataclass
class Server:
    """A server whose talker runs on a host, and whose decoder does not."""

    service: PipelineService
    host: HostProcess

    async def spoken(self, text: str) -> bytes:
        async with self.service.get_model("tiny-loud").run(
            SpeechRequest(text, "tiny")
        ) as utterance:
            return np.concatenate([chunk.samples async for chunk in utterance]).tobytes()

    @property
    def pids(self) -> dict[str, int | None]:
        stages = self.service.get_model("tiny-loud").orchestrator.stages
        return {name: stage.pid for name, stage in stages.items()}

    async def ready(self) -> None:
        async with asyncio.timeout(LIMIT_S):
            while not self.service.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.02)

    async def idle(self) -> None:
        """Return when no stage holds anything."""
        async with asyncio.timeout(LIMIT_S):
            while any(  # noqa: ASYNC110
                any(report.counts.values()) for report in await self.service.collect_stage_reports()
            ):
                await asyncio.sleep(0.02)


@pytest.fixture(scope="module")
def checkpoint(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("checkpoint")
    save_tiny_checkpoint(folder)
    return folder


@pytest.fixture(scope="module")
def host() -> Iterator[HostProcess]:
    with stage_host(5) as host:
        host.start()
        host.wait_until_ready()
        yield host


def service_with(checkpoint: Path, host: HostProcess, key: str = KEY) -> PipelineService:
    stages = {
        "talker": {"slots": SLOTS, "max_model_len": 128},
        "decoder": {"slots": SLOTS, "credit_s": 4.0},
    }
    deployment = parse_deployment({"stages": stages, "chunk_timeout_s": 60.0}, AUDIBLE)
    located = LocatedModel(LOUD, checkpoint)
    plan = ServicePlan(located, AUDIBLE, placed(deployment, {"talker": str(host.address)}))
    return create_service(plan, remote_stages=partial(StagesOnHosts, key=LinkKey(key.encode())))


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(checkpoint: Path, host: HostProcess) -> AsyncIterator[Server]:
    service = service_with(checkpoint, host)
    await service.start()
    yield Server(service, host)
    await service.stop()


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def undisturbed(server: Server) -> bytes:
    return await server.spoken(TEXT)


@dataclass
class Listener:
    """One that reads a few chunks, then waits until it is told to go on."""

    begun: asyncio.Event = field(default_factory=asyncio.Event)
    may_go_on: asyncio.Event = field(default_factory=asyncio.Event)

    async def listen(self, server: Server) -> None:
        heard = 0
        model = server.service.get_model("tiny-loud")
        async with model.run(SpeechRequest(TEXT, "tiny")) as utterance:
            async for _ in utterance:
                heard += 1
                if heard == HEARD:
                    self.begun.set()
                    await self.may_go_on.wait()


@asynccontextmanager
async def listening(server: Server) -> AsyncIterator[list[asyncio.Task[None]]]:
    """Listeners in the middle of their text; they go on after the block."""
    listeners = [Listener() for _ in range(SLOTS)]
    tasks = [asyncio.create_task(listener.listen(server)) for listener in listeners]
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*(listener.begun.wait() for listener in listeners))
    yield tasks
    for listener in listeners:
        listener.may_go_on.set()


async def ends(tasks: list[asyncio.Task[None]]) -> list[type]:
    async with asyncio.timeout(LIMIT_S):
        return [type(end) for end in await asyncio.gather(*tasks, return_exceptions=True)]


@contextmanager
def within(limit_s: float) -> Iterator[None]:
    with a_clock_that_leaves_out_stalls() as passed:
        yield
    assert passed[0] < limit_s


async def test_a_pulled_cable_is_a_typed_error_and_then_it_speaks_on(
    server: Server, undisturbed: bytes
) -> None:
    if not namespaces.are_possible():
        pytest.skip(namespaces.WHY_NOT)
    assert server.host.host is not None
    before = server.pids
    async with listening(server) as tasks:
        server.host.host.pull()
    with within(WITHIN_S):
        assert await ends(tasks) == [StageDied] * SLOTS
    assert not server.service.ready
    with pytest.raises(StageDied):
        await server.spoken(TEXT)
    server.host.host.plug_in()
    await server.ready()
    assert await server.spoken(TEXT) == undisturbed
    assert server.pids["decoder"] == before["decoder"]
    assert server.pids["talker"] != before["talker"]
    await server.idle()


async def test_a_host_that_stands_still_is_lost_in_time(server: Server, undisturbed: bytes) -> None:
    async with listening(server) as tasks:
        server.host.send(signal.SIGSTOP)
    with within(WITHIN_S):
        assert await ends(tasks) == [StageDied] * SLOTS
    server.host.send(signal.SIGCONT)
    await server.ready()
    assert await server.spoken(TEXT) == undisturbed
    await server.idle()


async def test_a_killed_stage_is_started_again_on_its_host(
    server: Server, undisturbed: bytes
) -> None:
    before = server.pids
    assert before["talker"] is not None
    async with listening(server) as tasks:
        os.kill(before["talker"], signal.SIGKILL)
    assert await ends(tasks) == [StageDied] * SLOTS
    await server.ready()
    assert await server.spoken(TEXT) == undisturbed
    assert server.pids["decoder"] == before["decoder"]
    [report] = [r for r in await server.service.collect_stage_reports() if r.stage == "talker"]
    assert report.host == str(server.host.address)
    assert "exit code -9" in (report.last_death or "")
    assert report.rss_bytes > 0
    await server.idle()


async def test_a_killed_host_takes_its_stages_along_and_may_come_back(
    server: Server, undisturbed: bytes
) -> None:
    assert server.host.process is not None
    family = psutil.Process(server.host.process.pid).children(recursive=True)
    async with listening(server) as tasks:
        server.host.send(signal.SIGKILL)
    with within(WITHIN_S / 2):
        assert await ends(tasks) == [StageDied] * SLOTS
    server.host.end()
    assert not psutil.wait_procs(family, timeout=60)[1]
    server.host.start()
    server.host.wait_until_ready()
    await server.ready()
    assert await server.spoken(TEXT) == undisturbed
    await server.idle()


@pytest.mark.thorough
async def test_a_server_waits_for_a_host_that_comes_late_and_is_lost_while_it_loads(
    checkpoint: Path, server: Server, undisturbed: bytes
) -> None:
    server.host.end()
    service = service_with(checkpoint, server.host)
    starting = asyncio.create_task(service.start())
    server.host.start()
    await loads_a_stage(server.host)
    assert not starting.done()
    server.host.end()
    server.host.start()
    async with asyncio.timeout(LIMIT_S):
        await starting
    assert await Server(service, server.host).spoken(TEXT) == undisturbed
    await service.stop()
    await server.ready()


async def loads_a_stage(host: HostProcess) -> None:
    assert host.process is not None
    async with asyncio.timeout(LIMIT_S):
        while not find_descendants("cantata:talker", host.process.pid):  # noqa: ASYNC110
            await asyncio.sleep(0.02)


async def test_who_leaves_early_leaves_nothing_behind(server: Server, undisturbed: bytes) -> None:
    async with listening(server) as tasks:
        for task in tasks:
            task.cancel()
        assert await ends(tasks) == [asyncio.CancelledError] * SLOTS
        await server.idle()
    assert await server.spoken(TEXT) == undisturbed


async def test_a_host_with_other_files_is_refused_with_a_reason(
    checkpoint: Path, host: HostProcess, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(pipeline_module, "hash_files", lambda folder: "of other files")
    with pytest.raises(StageDied, match=r"cannot start: the files in .* are not the server's"):
        await service_with(checkpoint, host).start()
    assert server.service.ready


async def test_a_server_with_another_key_is_refused_at_once(
    checkpoint: Path, host: HostProcess, server: Server
) -> None:
    with pytest.raises(StageDied, match="key"):
        await service_with(checkpoint, host, "another key of thirty-two bytes").start()
    assert server.service.ready


async def test_a_host_that_stops_cuts_no_stream_and_is_used_again_afterwards(
    server: Server, undisturbed: bytes
) -> None:
    """SIGTERM: what is being spoken goes on, nothing new begins, and then the host ends."""
    assert server.host.process is not None
    async with listening(server) as tasks:
        server.host.send(signal.SIGTERM)
        async with asyncio.timeout(LIMIT_S):
            while server.service.ready:  # noqa: ASYNC110
                await asyncio.sleep(0.02)
        with pytest.raises(StageDied):
            await server.spoken(TEXT)
        assert all(report.alive for report in await server.service.collect_stage_reports())
    async with asyncio.timeout(LIMIT_S):
        await asyncio.gather(*tasks)
    assert await asyncio.to_thread(server.host.process.wait, 60) == 0
    server.host.end()
    server.host.start()
    await server.ready()
    assert await server.spoken(TEXT) == undisturbed
    await server.idle()
