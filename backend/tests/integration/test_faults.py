"""Faults inside the engine, injected into real processes: which error clients get, how soon.

The tests share one server, whose decoder injects the fault that a text names and whose clocks jump
by a day at each read. Each ends with the same samples as before, nothing held and no more
descriptors.
"""

from __future__ import annotations

import asyncio
import os
import resource
import signal
import time
from collections.abc import AsyncIterator, Awaitable, Callable, Iterator
from contextlib import asynccontextmanager, contextmanager
from pathlib import Path

import httpx
import numpy as np
import psutil
import pytest
import pytest_asyncio

from cantata.contract.data.errors import CantataError, Quarantined, StageDied
from cantata.contract.data.request import SpeechRequest
from cantata.contract.process.messages import Abort
from cantata.pipeline import aborts, shared_process, supervision, watchdog
from cantata.pipeline.stage_handle import StageHandle
from stall_free_clock import a_clock_that_leaves_out_stalls
from tiny_talker.faulty import DAY_S, FAULTY, MAX_ALLOCATED, FaultyRequestBuilder
from tiny_talker.serving import TinyServer, tiny_server

pytestmark = [pytest.mark.integration, pytest.mark.asyncio(loop_scope="module")]

ERROR_WITHIN_S = 2.0
"""From a fault to the error at the affected client."""
ANSWERS_WITHIN_S = 1.0
"""`/health` and `/metrics`, whatever the stages do."""
BACKOFF_S = (0.1, 0.2, 0.4, 0.8)
"""Shorter than the server's own, which `unit/test_supervision.py` checks."""
KNOWN = "One two three four."
LONG = " ".join(f"word{number}" for number in range(20)) + "."


@pytest_asyncio.fixture(scope="module", loop_scope="module")
async def server(tmp_path_factory: pytest.TempPathFactory) -> AsyncIterator[TinyServer]:
    folder = tmp_path_factory.mktemp("checkpoint")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(supervision, "BACKOFF_S", BACKOFF_S)
        async with tiny_server(
            folder, slots=8, pipeline=FAULTY, builder=FaultyRequestBuilder()
        ) as server:
            yield server


@pytest_asyncio.fixture(autouse=True, loop_scope="module")
async def baseline(server: TinyServer) -> AsyncIterator[None]:
    """What every test must leave behind: nothing."""
    expected = await speak(server, KNOWN)
    await settled(server)
    descriptors = psutil.Process().num_fds()
    yield
    await recovered(server)
    assert await speak(server, KNOWN) == expected
    await settled(server)

    async def no_descriptor_more() -> bool:
        return psutil.Process().num_fds() <= descriptors

    await until(no_descriptor_more, 30)


async def speak(server: TinyServer, text: str) -> bytes:
    async with server.model.run(SpeechRequest(text, "tiny")) as utterance:
        return np.concatenate([chunk.samples async for chunk in utterance]).tobytes()


async def outcome(server: TinyServer, text: str) -> bytes | CantataError:
    try:
        return await speak(server, text)
    except CantataError as error:
        return error


async def until(condition: Callable[[], Awaitable[bool]], timeout_s: float) -> None:
    async with asyncio.timeout(timeout_s):
        while not await condition():  # noqa: ASYNC110
            await asyncio.sleep(0.05)


async def settled(server: TinyServer) -> None:
    """No request is held, neither here nor in a stage."""

    async def nothing_held() -> bool:
        return not (server.model.orchestrator.slots_in_use or await server.held())

    await until(nothing_held, 30)
    assert server.model.admission.running == 0


async def recovered(server: TinyServer) -> None:
    async with asyncio.timeout(120):
        await server.model.orchestrator.wait_until_ready(120)


def stage(server: TinyServer, name: str) -> StageHandle:
    return server.model.orchestrator.stages[name]  # type: ignore[return-value]


def get_pid(server: TinyServer, name: str) -> int:
    pid = stage(server, name).pid
    assert pid is not None
    return pid


@asynccontextmanager
async def listening(server: TinyServer, count: int) -> AsyncIterator[list[asyncio.Task[object]]]:
    """This many streams, all of which have begun and none of which ends by itself."""
    begun = [asyncio.Event() for _ in range(count)]

    async def listen(number: int) -> object:
        try:
            request = SpeechRequest(f"{number} {LONG}" * 40, "tiny")
            async with server.model.run(request) as utterance:
                async for _ in utterance:
                    begun[number].set()
        except CantataError as error:
            return error
        return None

    tasks = [asyncio.create_task(listen(number)) for number in range(count)]
    await asyncio.gather(*(event.wait() for event in begun))
    yield tasks
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


async def test_a_stopped_stage_is_replaced_and_its_requests_fail(server: TinyServer) -> None:
    """SIGSTOP. `/health` and `/metrics` keep answering, and report it."""
    victim = get_pid(server, "decoder")
    slowest_s = 0.0
    async with (
        listening(server, 3) as tasks,
        httpx.AsyncClient(base_url=server.url, timeout=60) as http,
    ):
        os.kill(victim, signal.SIGSTOP)
        with a_clock_that_leaves_out_stalls() as passed:
            while not all(task.done() for task in tasks):
                asked = passed[0]
                for path in ("/health", "/metrics"):
                    assert (await http.get(path)).status_code == 200
                slowest_s = max(slowest_s, (passed[0] - asked) / 2)
            assert passed[0] < ERROR_WITHIN_S
            assert (await http.get("/ready")).status_code == 503
            assert (
                'cantata_stage_alive{model="tiny",stage="decoder"} 0.0'
                in (await http.get("/metrics")).text
            )
        errors = [task.result() for task in tasks]
        assert [type(error) for error in errors] == [StageDied] * 3
        assert "was stopped" in str(errors[0])
    assert slowest_s < ANSWERS_WITHIN_S
    await recovered(server)
    assert get_pid(server, "decoder") != victim
    assert server.model.orchestrator.quarantined == 0


@pytest.mark.thorough(every=3)
@pytest.mark.parametrize("fault", ["exit", "sleep", "spin"])
async def test_a_request_that_ends_a_stage_twice_is_rejected(
    server: TinyServer, fault: str
) -> None:
    """Other open requests fail with `stage_died` once or twice, and are spoken after that."""
    poison, before = f"FAULT:{fault} {LONG}", server.model.orchestrator.quarantined
    innocent = [f"{fault} and {number} innocent words." for number in range(3)]
    earlier = server.model.orchestrator.restarts["decoder"].restarts
    assert isinstance(await outcome(server, poison), StageDied)
    await recovered(server)
    first, *others = await asyncio.gather(*(outcome(server, t) for t in (poison, *innocent)))
    assert isinstance(first, Quarantined)
    assert {type(other) for other in others} <= {StageDied, bytes}
    assert server.model.orchestrator.quarantined == before + 1
    await recovered(server)
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        refusal = await http.post("/v1/audio/speech", json={"input": poison})
        assert (refusal.status_code, refusal.json()["error"]["code"]) == (422, "quarantined")
        metrics = (await http.get("/metrics")).text
    assert f'cantata_requests_quarantined_total{{model="tiny"}} {before + 1}.0' in metrics
    assert [type(await outcome(server, text)) for text in innocent] == [bytes] * len(innocent)
    assert server.model.orchestrator.restarts["decoder"].restarts == earlier + 2


@contextmanager
def little_memory() -> Iterator[Callable[[int], None]]:
    """Limits the memory that a process allocates from now on, by a control group (version 1)."""
    group = Path("/sys/fs/cgroup/memory") / f"cantata-test-{os.getpid()}"
    try:
        group.mkdir()
        (group / "memory.limit_in_bytes").write_text(str(MAX_ALLOCATED // 4))
    except OSError as error:
        pytest.skip(f"no control group can be made here: {error}")

    def limit(pid: int) -> None:
        (group / "cgroup.procs").write_text(str(pid))

    try:
        yield limit
    finally:
        group.rmdir()


async def test_a_request_that_uses_up_the_memory_is_quarantined(server: TinyServer) -> None:
    """The kernel kills the decoder, twice."""
    poison = f"FAULT:allocate {LONG}"
    with little_memory() as limit:
        for expected in (StageDied, Quarantined):
            limit(get_pid(server, "decoder"))
            assert isinstance(await outcome(server, poison), expected)
            await recovered(server)
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        assert "exit code -9" in (await http.get("/health")).json()["stages"][1]["last_death"]


async def test_stages_are_watched_on_when_descriptors_ran_out(server: TinyServer) -> None:
    usual = resource.getrlimit(resource.RLIMIT_NOFILE)
    async with listening(server, 1) as tasks:
        os.close(lowest_free := os.dup(0))
        resource.setrlimit(resource.RLIMIT_NOFILE, (lowest_free, usual[1]))
        try:
            with pytest.raises(OSError, match="Too many open files"):
                os.dup(0)
            reports = await server.app.state.context.service.collect_stage_reports()
            await asyncio.sleep(4 * watchdog.INTERVAL_S)
        finally:
            resource.setrlimit(resource.RLIMIT_NOFILE, usual)
        assert [report.alive for report in reports] == [True, True]
        os.kill(get_pid(server, "decoder"), signal.SIGSTOP)
        assert isinstance(await tasks[0], StageDied)


async def test_kills_from_outside_quarantine_no_request(server: TinyServer) -> None:
    """The same text is open three times. `/health` reports the third kill within a minute."""
    text = f"Killed {LONG}" * 4
    for _ in range(3):
        speaking = asyncio.create_task(outcome(server, text))
        while not (await stage(server, "decoder").get_counts())["requests"]:
            pass  # each answer follows a step of the decoder
        os.kill(get_pid(server, "decoder"), signal.SIGKILL)
        with a_clock_that_leaves_out_stalls() as passed:
            assert isinstance(await speaking, StageDied)
            assert passed[0] < ERROR_WITHIN_S
        await recovered(server)
    assert isinstance(await outcome(server, text), bytes)
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        health = (await http.get("/health")).json()
    assert health["status"] == "ok"
    assert "memory" in health["message"]
    assert "exit code -9" in health["stages"][1]["last_death"]


async def test_requests_fail_without_waiting_for_the_other_stages(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The talker is stopped while the decoder dies: it may be waiting for the next decoder."""
    monkeypatch.setattr(watchdog, "STOPPED_S", 60.0)
    talker = get_pid(server, "talker")
    async with listening(server, 2) as tasks:
        os.kill(talker, signal.SIGSTOP)
        try:
            os.kill(get_pid(server, "decoder"), signal.SIGKILL)
            with a_clock_that_leaves_out_stalls() as passed:
                told = await asyncio.gather(*tasks)
                assert passed[0] < ERROR_WITHIN_S
        finally:
            os.kill(talker, signal.SIGCONT)
    assert [type(error) for error in told] == [StageDied] * 2
    await recovered(server)
    assert get_pid(server, "talker") == talker


async def test_garbage_on_the_control_socket_is_the_stages_death(server: TinyServer) -> None:
    async with listening(server, 1) as tasks:
        with a_clock_that_leaves_out_stalls() as passed:
            assert isinstance(await outcome(server, f"FAULT:garbage {LONG}"), StageDied)
            assert isinstance(await tasks[0], StageDied)
            assert passed[0] < ERROR_WITHIN_S
    await recovered(server)
    async with listening(server, 1) as tasks:
        channel = stage(server, "decoder")._channel
        assert channel is not None
        channel._writer.write(b"garbage " * 4)
        with a_clock_that_leaves_out_stalls() as passed:
            assert isinstance(await tasks[0], StageDied)
            assert passed[0] < ERROR_WITHIN_S


async def test_a_slot_whose_abort_was_lost_is_reclaimed(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    decoder = stage(server, "decoder")
    send = decoder.send

    async def lose_aborts(message: object) -> None:
        if not isinstance(message, Abort):
            await send(message)  # type: ignore[arg-type]

    monkeypatch.setattr(aborts, "DEADLINE_S", 0.1)
    monkeypatch.setattr(decoder, "send", lose_aborts)
    async with listening(server, 2):
        pass
    assert server.model.orchestrator.slots_in_use == 0
    assert (await decoder.get_counts())["requests"] == 2
    monkeypatch.undo()

    async def nothing_held() -> bool:
        return not await server.held()

    await until(nothing_held, 30)
    assert stage(server, "decoder") is decoder


async def test_a_restart_that_fails_is_tried_again(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    failures = iter([OSError(24, "Too many open files"), RuntimeError("can't start new thread")])
    spawn = shared_process.spawn  # type: ignore[attr-defined]

    def fail_at_first(*args: object) -> object:
        error = next(failures, None)
        if error is not None:
            raise error
        return spawn(*args)  # type: ignore[arg-type]

    before = server.model.orchestrator.restarts["decoder"].restarts
    monkeypatch.setattr(shared_process, "spawn", fail_at_first)
    os.kill(get_pid(server, "decoder"), signal.SIGKILL)

    async def is_down() -> bool:
        return not server.model.orchestrator.ready

    await until(is_down, 30)
    await recovered(server)
    assert server.model.orchestrator.restarts["decoder"].restarts == before + 3
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        metrics = (await http.get("/metrics")).text
    told = f'cantata_stage_restarts_total{{model="tiny",stage="decoder"}} {before + 3}.0'
    assert told in metrics


async def test_jumps_of_the_clock_end_nothing(
    server: TinyServer, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The stages' clocks jump in every test; here the server's jumps, too."""
    expected = await speak(server, LONG)
    real, looks = time.time, iter(range(1 << 62))
    monkeypatch.setattr(time, "time", lambda: real() + (DAY_S if next(looks) % 2 else -DAY_S))
    assert await speak(server, LONG) == expected
    async with httpx.AsyncClient(base_url=server.url, timeout=60) as http:
        uptimes = [(await http.get("/health")).json()["uptime_s"] for _ in range(2)]
    assert 0 < uptimes[0] <= uptimes[1] < DAY_S / 2
