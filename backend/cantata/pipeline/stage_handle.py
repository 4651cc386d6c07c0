"""The server's view of one stage process: spawned, ready, watched, drained, ended."""

from __future__ import annotations

import asyncio
import logging
import os
import socket
from collections.abc import Callable, Coroutine, Mapping

import psutil

from cantata.contract.data.errors import CantataError, StageDied
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    CannotStart,
    Credit,
    Drained,
    DrainStage,
    Extend,
    Failed,
    LoadNow,
    MemoryNeeds,
    Output,
    Ping,
    Pong,
    Ready,
    Register,
    StageCapacity,
    StepMeasured,
)
from cantata.ipc.shared_heartbeat import SharedHeartbeat, make_memory, send_memory
from cantata.ipc.stage_messages import decode_message, encode_message
from cantata.ipc.wire import AsyncChannel, BrokenChannel
from cantata.pipeline.gpu_memory import LoadGate
from cantata.pipeline.shared_process import SharedProcess
from cantata.pipeline.stage_process import Death, Report, StageState
from cantata.pipeline.watchdog import INTERVAL_S, Hang, HangDetector, ProcessSampler
from cantata.stages.process.launch import StageLaunch
from cantata.utils.intervals import seconds_to_next_interval

logger = logging.getLogger(__name__)

PING_INTERVAL_S = 1.0
PING_DEADLINE_S = 30.0
"""A stage answers between two steps."""
REAP_TIMEOUT_S = 5.0
"""A process that closed its connection is killed if it has not exited within this time. Its exit
code tells whether a request is to blame, and a large process on a busy machine may take a second to
exit."""


class StageHandle:
    """Implements `StageProcess`: owns a process of this machine and its control channel.

    Args:
        silence_s: after which requests fail.
        on_message: called with every report, in order.
        on_death: called once when a process that was ready ends without having been asked to.
        process: that the stage has claimed, among others. None: it has one of its own.
        gate: lets it load, if it reports its needs.
    """

    def __init__(
        self,
        launch: StageLaunch,
        silence_s: float,
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, Death], None],
        process: SharedProcess | None = None,
        gate: LoadGate | None = None,
    ) -> None:
        self.name = launch.spec.name
        self.host = ""
        self.state = StageState.STARTING
        self.pid: int | None = None
        """Process id, kept after the process has ended; None before `start`."""
        self.startup_s = 0.0
        """From spawning the process to its readiness; 0 until then."""
        self.exit_code: int | None = None
        """Known once the process has ended."""
        self.last_pong: Pong | None = None
        self._gate = gate
        self._launch = launch
        self._title = launch.title
        self._hang_detector = HangDetector(silence_s)
        self._on_message = on_message
        self._on_death = on_death
        self._process = process or SharedProcess((self.name,))
        self._heartbeat: SharedHeartbeat | None = None
        self._channel: AsyncChannel | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[StageCapacity] = asyncio.get_running_loop().create_future()
        self._pongs: dict[int, asyncio.Future[Pong]] = {}
        self._pings = 0

    @property
    def rss_bytes(self) -> int:
        """Resident memory of the process; 0: it cannot be read now, or counts as another
        stage's that shares the process."""
        if not self.pid or self._process.first != self.name:
            return 0
        try:
            return int(psutil.Process(self.pid).memory_info().rss)
        except (psutil.Error, OSError):  # gone, or there is no descriptor to read it with
            return 0

    async def wait_until_possible(self) -> None:
        """A process of this machine can be started at any time."""

    async def start(self, deadline_s: float) -> StageCapacity:
        """Spawn the process and wait until it has loaded its model.

        Raises:
            StageDied: it exited instead, or was not ready in time; nothing is left of it.
            ConfigError: its GPU has too little memory, likewise.
            OSError: no descriptor or process is available.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        try:
            async with asyncio.timeout(deadline_s):
                await self._spawn()
                capacity = await self._ready
                if self._is_over:  # its end came together with its readiness
                    raise self._build_died_error()
        except TimeoutError:
            await self.stop(0)
            late = f"stage {self.name!r} was not ready within {deadline_s:g} s"
            raise StageDied(late) from None
        except BaseException:  # cancellation too must leave nothing behind
            await self.stop(0)
            raise
        self.startup_s = loop.time() - started
        self.state = StageState.READY
        self._spawn_task(self._keep_pinging(), "ping")
        logger.info("%s ready after %.1f s", self._title, self.startup_s)
        return capacity

    async def send(self, message: Register | Extend | Abort | Credit) -> None:
        """Send one message.

        Raises:
            StageDied: the process has died.
            TypeError: a stage's input holds what cannot be sent.
        """
        if self._channel is None or self.state is StageState.ENDED:
            raise self._build_died_error()
        try:
            await self._channel.send(*encode_message(message))
        except ConnectionError as error:
            raise self._build_died_error() from error

    async def get_counts(self) -> Mapping[str, int]:
        """What the stage holds now, by name; raises as `ask` does."""
        return (await self.ask()).counts

    async def ask(self, deadline_s: float = PING_DEADLINE_S) -> Pong:
        if self._channel is None or self.state is StageState.ENDED:
            raise self._build_died_error()
        self._pings += 1
        number, answer = self._pings, asyncio.get_running_loop().create_future()
        self._pongs[number] = answer
        try:
            async with asyncio.timeout(deadline_s):
                await self._channel.send(*encode_message(Ping(number)))
                pong: Pong = await answer
                return pong
        except ConnectionError as error:
            raise self._build_died_error() from error
        finally:
            self._pongs.pop(number, None)

    async def stop(self, deadline_s: float) -> None:
        if self.state is StageState.READY and self._channel is not None:
            self.state = StageState.DRAINING
            try:
                await self._channel.send(*encode_message(DrainStage()))
                await asyncio.to_thread(self._process.wait, deadline_s)
            except ConnectionError:
                logger.info("%s was already gone", self._title)
        self.state = StageState.ENDED
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        self._process.give_up(self.name)
        await asyncio.to_thread(self._process.end)
        self.exit_code = self._process.exit_code
        if self._heartbeat is not None:
            self._heartbeat.close()
            self._heartbeat = None
        if self._channel is not None:
            await self._channel.close()

    async def _spawn(self) -> None:
        ours, theirs = socket.socketpair()
        memory = make_memory(self._launch.deployment.slots)
        try:
            send_memory(ours, memory)
            self._heartbeat = SharedHeartbeat(os.dup(memory))
            self.pid = await self._process.start(self._launch, theirs)
        except BaseException:
            ours.close()  # a process still being spawned exits by itself
            raise
        finally:
            os.close(memory)
            theirs.close()
        self._channel = await AsyncChannel.open(ours)
        self._spawn_task(self._read(self._channel), "read")
        self._spawn_task(self._watch(self._heartbeat), "watch")

    def _spawn_task(self, coroutine: Coroutine[None, None, None], what: str) -> None:
        task = asyncio.create_task(coroutine, name=f"{self._title}:{what}")
        self._tasks.add(task)
        task.add_done_callback(self._on_ended)

    def _on_ended(self, task: asyncio.Task[None]) -> None:
        self._tasks.discard(task)
        error = None if task.cancelled() else task.exception()
        if error is not None:
            # A stage without a watcher, or whose messages cannot be handled, cannot be used.
            logger.error("%s: %s failed", self._title, task.get_name(), exc_info=error)
            self._mark_dead(f"its supervision failed: {error!r}")

    async def _read(self, channel: AsyncChannel) -> None:
        try:
            while True:
                self._dispatch(decode_message(await channel.receive()))
        except BrokenChannel as error:
            self._mark_dead(f"its connection broke: {error}")
        except ConnectionError as error:
            self._mark_dead(f"its connection broke: {error}", is_exiting=True)

    def _dispatch(self, message: object) -> None:
        match message:
            case Pong():
                self.last_pong = message
                answer = self._pongs.get(message.number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
                self._on_message(self.name, message)
            case Output() | Failed() | Aborted() | StepMeasured():
                self._on_message(self.name, message)
            case MemoryNeeds(needs):
                self._spawn_task(self._let_load(needs), "gate")
            case Ready(capacity):
                if not self._ready.done():
                    self._ready.set_result(capacity)
            case CannotStart(why):
                self.state = StageState.ENDED
                if not self._ready.done():
                    self._ready.set_exception(StageDied(f"stage {self.name!r} cannot start: {why}"))
            case Drained():
                logger.info("%s drained", self._title)
            case _:
                raise TypeError(f"a stage does not say {type(message).__name__}")

    async def _let_load(self, needs: Mapping[str, int]) -> None:
        """Have the process load once there is memory for that."""
        assert self._channel is not None
        assert self._gate is not None, "it was not asked for its needs"
        try:
            await self._gate.admit(self.name, needs)
            await self._channel.send(*encode_message(LoadNow()))
        except CantataError as error:
            self.state = StageState.ENDED
            if not self._ready.done():
                self._ready.set_exception(error)
        except ConnectionError:
            logger.info("%s was already gone", self._title)

    async def _keep_pinging(self) -> None:
        while True:
            await asyncio.sleep(seconds_to_next_interval(PING_INTERVAL_S))
            try:
                await self.ask()
            except TimeoutError:
                why = f"gave no answer for {PING_DEADLINE_S:g} s"
                self._mark_dead(why, Hang(why, from_outside=False))
                return
            except StageDied:
                return

    async def _watch(self, heartbeat: SharedHeartbeat) -> None:
        loop = asyncio.get_running_loop()
        assert self.pid is not None
        sampler = ProcessSampler(self.pid)
        while True:
            await asyncio.sleep(seconds_to_next_interval(INTERVAL_S))
            sample = sampler.sample(heartbeat.read(), loop.time())
            hang = None if sample is None else self._hang_detector.observe(sample)
            if hang is not None:
                self._mark_dead(hang.why, hang)
                return

    def _mark_dead(self, why: str, hang: Hang | None = None, *, is_exiting: bool = False) -> None:
        """The process is unusable: from here on it gets no requests. Unless it is exiting by
        itself, it is killed."""
        if self.state in (StageState.ENDED, StageState.DRAINING):
            return
        was_ready, self.state = self.state is StageState.READY, StageState.ENDED
        logger.error("%s (process %s): %s", self._title, self.pid, why)
        self._spawn_task(self._reap(why, hang, was_ready, is_exiting), "reap")

    async def _reap(self, why: str, hang: Hang | None, was_ready: bool, is_exiting: bool) -> None:
        if is_exiting:
            await asyncio.to_thread(self._process.wait, REAP_TIMEOUT_S)
        # Read before the kill: our own signal says nothing about the cause.
        self.exit_code = None if self._process.was_ended else self._process.exit_code
        self._process.kill()  # no effect if it has ended
        ending = "" if self.exit_code is None else f" with exit code {self.exit_code}"
        error = StageDied(f"stage {self.name!r} (process {self.pid}) has ended{ending}: {why}")
        if not self._ready.done():
            self._ready.set_exception(error)
        for answer in self._pongs.values():
            if not answer.done():
                answer.set_exception(error)
        if not was_ready:
            self._process.note_end(self.name)
            return
        assert self._heartbeat is not None
        snapshot = self._heartbeat.read()
        held = frozenset(snapshot.frames)
        death = Death(error, self.exit_code, hang, snapshot.at_work_on, snapshot.alone, held)
        if not snapshot.at_work_on:
            self._process.note_end(self.name)
            await self._process.wait_for_reports(REAP_TIMEOUT_S)
        self._on_death(self.name, death)
        self._process.note_end(self.name)

    @property
    def _is_over(self) -> bool:
        return self.state is StageState.ENDED

    def _build_died_error(self) -> StageDied:
        return StageDied(f"stage {self.name!r} (process {self.pid}) is not running")
