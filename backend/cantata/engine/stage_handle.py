"""The server's view of one stage process: spawned, ready, pinged, drained, ended."""

from __future__ import annotations

import asyncio
import logging
import multiprocessing
import socket
from collections.abc import Callable, Coroutine, Mapping
from enum import Enum

from cantata.connectors.wire import AsyncChannel
from cantata.contract.errors import StageDied
from cantata.contract.messages import (
    Abort,
    Aborted,
    Credit,
    Drain,
    Drained,
    Extend,
    Failed,
    Measured,
    Output,
    Ping,
    Pong,
    Ready,
    Register,
    StageCapacity,
)
from cantata.engine.stage_process import StageLaunch, run

logger = logging.getLogger(__name__)

PING_INTERVAL_S = 5.0
PING_DEADLINE_S = 30.0
"""A stage answers between two steps; one that takes this long for a step is stuck."""
ENDING_DEADLINE_S = 5.0

Report = Output | Failed | Aborted | Measured
"""What a stage says of its own accord while it serves."""


class StageState(Enum):
    """Where a stage process is in its life; only forwards."""

    STARTING = "starting"
    READY = "ready"
    DRAINING = "draining"
    ENDED = "ended"


class StageHandle:
    """Owns one process and its control channel.

    Args:
        launch: what to run.
        on_message: told every Output, Failed, Aborted and Measured, in order.
        on_death: called once when the process ends without having been asked to.
    """

    def __init__(
        self,
        launch: StageLaunch,
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, StageDied], None],
    ) -> None:
        self.name = launch.spec.name
        self.state = StageState.STARTING
        self.startup_s = 0.0
        """From spawning the process to its readiness; 0 until then."""
        self._title = launch.title
        self._on_message = on_message
        self._on_death = on_death
        self._socket, theirs = socket.socketpair()
        # spawn: a forked child would inherit the server's threads, sockets and event loop.
        self._process = multiprocessing.get_context("spawn").Process(
            target=run, args=(launch, theirs), name=launch.title, daemon=True
        )
        self._their_socket = theirs
        self._channel: AsyncChannel | None = None
        self._tasks: set[asyncio.Task[None]] = set()
        self._ready: asyncio.Future[StageCapacity] = asyncio.get_running_loop().create_future()
        self._pongs: dict[int, asyncio.Future[Pong]] = {}
        self._pings = 0

    @property
    def pid(self) -> int | None:
        """Process id, None before `start`."""
        return self._process.pid

    async def start(self) -> StageCapacity:
        """Spawn the process and wait until it has loaded its model.

        Raises:
            StageDied: it ended instead.
        """
        loop = asyncio.get_running_loop()
        started = loop.time()
        await asyncio.to_thread(self._process.start)
        self._their_socket.close()
        self._channel = await AsyncChannel.open(self._socket)
        self._spawn_task(self._read(self._channel), "read")
        capacity = await self._ready
        self.startup_s = loop.time() - started
        self.state = StageState.READY
        self._spawn_task(self._keep_pinging(), "ping")
        logger.info("%s ready after %.1f s", self._title, self.startup_s)
        return capacity

    async def send(self, message: Register | Extend | Abort | Credit) -> None:
        """Send one message.

        Raises:
            StageDied: the process is gone.
        """
        if self._channel is None or self.state is StageState.ENDED:
            raise self._death()
        try:
            await self._channel.send(message)
        except ConnectionError as error:
            raise self._death() from error

    async def counts(self) -> Mapping[str, int]:
        """What the stage holds now, by name; raises as `ask` does."""
        return (await self.ask()).counts

    async def ask(self) -> Pong:
        """How the stage is now.

        Raises:
            StageDied: the process is gone or does not answer.
        """
        if self._channel is None or self.state is StageState.ENDED:
            raise self._death()
        self._pings += 1
        number, answer = self._pings, asyncio.get_running_loop().create_future()
        self._pongs[number] = answer
        try:
            await self._channel.send(Ping(number))
            async with asyncio.timeout(PING_DEADLINE_S):
                pong: Pong = await answer
                return pong
        except (ConnectionError, TimeoutError) as error:
            raise self._death() from error
        finally:
            self._pongs.pop(number, None)

    async def stop(self, deadline_s: float) -> None:
        """Drain until the deadline, then end the process."""
        if self.state is StageState.READY and self._channel is not None:
            self.state = StageState.DRAINING
            try:
                await self._channel.send(Drain())
                await asyncio.to_thread(self._process.join, deadline_s)
            except ConnectionError:
                logger.info("%s was already gone", self._title)
        self.state = StageState.ENDED
        await asyncio.to_thread(self._end_process)
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._channel is not None:
            await self._channel.close()

    def _end_process(self) -> None:
        if self._process.pid is None:
            return
        for end in (self._process.terminate, self._process.kill):
            if self._process.is_alive():
                end()
                self._process.join(ENDING_DEADLINE_S)

    def _spawn_task(self, coroutine: Coroutine[None, None, None], what: str) -> None:
        task = asyncio.create_task(coroutine, name=f"{self._title}:{what}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _read(self, channel: AsyncChannel) -> None:
        try:
            while True:
                self._dispatch(await channel.receive())
        except ConnectionError:
            if self.state is not StageState.ENDED and self.state is not StageState.DRAINING:
                self._died()

    def _dispatch(self, message: object) -> None:
        match message:
            case Output() | Failed() | Aborted() | Measured():
                self._on_message(self.name, message)
            case Pong():
                answer = self._pongs.get(message.number)
                if answer is not None and not answer.done():
                    answer.set_result(message)
            case Ready(capacity):
                self._ready.set_result(capacity)
            case Drained():
                logger.info("%s drained", self._title)

    async def _keep_pinging(self) -> None:
        while True:
            await asyncio.sleep(PING_INTERVAL_S)
            try:
                await self.ask()
            except StageDied:
                if self.state is StageState.READY:
                    logger.error("%s does not answer; ending it", self._title)
                    await asyncio.to_thread(self._end_process)
                return

    def _died(self) -> None:
        self.state = StageState.ENDED
        error = self._death()
        logger.error("%s", error.message)
        if not self._ready.done():
            self._ready.set_exception(error)
        for answer in self._pongs.values():
            if not answer.done():
                answer.set_exception(error)
        self._on_death(self.name, error)

    def _death(self) -> StageDied:
        code = self._process.exitcode  # None for a moment after the connection broke
        ending = "" if code is None else f" with exit code {code}"
        return StageDied(f"stage {self.name!r} (process {self.pid}) has ended{ending}")
