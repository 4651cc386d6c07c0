"""A process of this machine that runs one stage, or several that share it."""

from __future__ import annotations

import asyncio
import socket
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from multiprocessing.connection import wait
from multiprocessing.process import BaseProcess

from cantata.contract.data.errors import StageDied
from cantata.pipeline.spawning import spawn
from cantata.stages.process.launch import StageLaunch

ENDING_DEADLINE_S = 5.0


class SharedProcess:
    """Started once each of its stages has joined. Each stage's handle uses it as its own process;
    whoever ends it ends all of them. `stages`: their names, in the order in which they load."""

    def __init__(self, stages: Sequence[str]) -> None:
        self._names = tuple(stages)
        self._claimed: set[str] = set()
        self._joined: dict[str, tuple[StageLaunch, socket.socket]] = {}
        self._started: asyncio.Future[int] = asyncio.get_running_loop().create_future()
        self._using = set(stages)
        """Those that have not ended it."""
        self._ended: set[str] = set()
        """Those that know of its end."""
        self._all_ended = asyncio.Event()
        self._process: BaseProcess | None = None
        self._lock = threading.Lock()
        """Of the process object, which no two threads may ask for its exit code."""
        self._exit_code: int | None = None
        self.was_ended = False
        """By one of the handles: then its exit code says nothing about the cause."""

    @property
    def first(self) -> str:
        """The name of the stage whose thread is the main one."""
        return self._names[0]

    @property
    def exit_code(self) -> int | None:
        """Known once it has ended."""
        with self._lock:
            return self._find_exit_code()

    def claim(self, name: str) -> bool:
        """Whether a stage may join: it has not, and none has ended the process."""
        if name in self._claimed or len(self._using) < len(self._names):
            return False
        self._claimed.add(name)
        return True

    async def start(self, launch: StageLaunch, control: socket.socket) -> int:
        """Join, and wait until the others have and the process has started.

        Args:
            control: its end of the channel to the server.

        Returns:
            The process's id.

        Raises:
            OSError: no process or descriptor is available.
            StageDied: another stage has ended it before.
        """
        self._joined[launch.spec.name] = launch, control
        if len(self._joined) == len(self._names):
            launches, controls = zip(*(self._joined[name] for name in self._names), strict=True)
            try:
                self._process = await asyncio.to_thread(spawn, launches, controls)
            except BaseException as error:
                self._give_up(error if isinstance(error, OSError) else None)
                raise
            assert self._process.pid is not None
            if not self._started.done():
                self._started.set_result(self._process.pid)
            return self._process.pid
        return await asyncio.shield(self._started)

    def wait(self, timeout_s: float) -> None:
        """Block until the process has ended, or the time is over."""
        with self._lock:
            process = self._process
            if process is None or self._find_exit_code() is not None:
                return
            sentinel = process.sentinel
        wait([sentinel], timeout_s)
        with self._lock:
            self._find_exit_code()

    def kill(self) -> None:
        """End it at once; no effect if it has ended."""
        self._signal(BaseProcess.kill)

    def give_up(self, name: str) -> None:
        """This stage will not join, or has ended: the process serves no purpose any more."""
        self._using.discard(name)
        self.note_end(name)
        self._give_up(None)

    def note_end(self, name: str) -> None:
        """This stage knows that the process has ended; one that was at work has reported it."""
        self._ended.add(name)
        if self._ended.issuperset(self._names):
            self._all_ended.set()

    async def wait_for_reports(self, timeout_s: float) -> None:
        """Return once every stage knows of the end, or when the time is over.

        A stage that was idle waits for this before it reports its own end. Otherwise a request
        could be told of the idle stage's end, and not count as the cause of the other's.
        """
        with suppress(TimeoutError):
            async with asyncio.timeout(timeout_s):
                await self._all_ended.wait()

    def end(self) -> None:
        """End the process, gently if it follows; blocks. Once no stage uses it, its descriptors
        are closed too."""
        for how in (BaseProcess.terminate, BaseProcess.kill):
            if self._signal(how):
                self.wait(ENDING_DEADLINE_S)
        with self._lock:
            if self._process is not None and self._find_exit_code() is not None and not self._using:
                # Otherwise its descriptors would stay open until the next garbage collection.
                self._process.close()
                self._process = None

    def _give_up(self, error: OSError | None) -> None:
        if not self._started.done():
            died = StageDied(f"the process of stages {', '.join(self._names)} was not started")
            self._started.set_exception(error or died)
            self._started.exception()  # nobody may wait for it

    def _signal(self, how: Callable[[BaseProcess], None]) -> bool:
        """Whether it was still running."""
        with self._lock:
            if self._process is None or self._find_exit_code() is not None:
                return False
            self.was_ended = True
            how(self._process)
            return True

    def _find_exit_code(self) -> int | None:
        if self._exit_code is None and self._process is not None:
            self._exit_code = self._process.exitcode
        return self._exit_code
