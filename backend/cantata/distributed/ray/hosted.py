"""A process that one of Ray's actors hosts: the actor's end, and the process's own.

The actor supervises; a separate process does the work, so that its interpreter has none of Ray's
threads. The two exchange lines of JSON: the first line to the process is its arguments, further
ones are news for it; it reports how it is. It ends by itself when the actor does, which it notices
as the end of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import os
import signal
import sys
import time
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TextIO

_MAX_LINE = 1 << 20
_KILL_AFTER_S = 10.0
"""Added to the time that the process is given to end."""


class ActorProcess:
    """One process; made by `start_process`, ended by `stop` or by itself. `process`: with pipes for
    its input and output."""

    def __init__(self, process: asyncio.subprocess.Process) -> None:
        self._process = process
        self._news = asyncio.Event()
        self._last_report: Mapping[str, Any] = {}
        self._last_report_s = time.monotonic()
        self._reading = asyncio.create_task(self._read(), name="cantata:hosted")

    @property
    def last_report(self) -> Mapping[str, Any]:
        """Its last report; empty before the first."""
        return self._last_report

    @property
    def silence_s(self) -> float:
        """Seconds since its last report, or since it was started."""
        return time.monotonic() - self._last_report_s

    @property
    def pid(self) -> int:
        return self._process.pid

    @property
    def ended(self) -> int | None:
        """Its exit code, once it has ended; negative: the signal that ended it."""
        return self._process.returncode

    async def updates(self) -> Mapping[str, Any]:
        """Wait until it reports something, or ends."""
        self._news.clear()
        if not self._reading.done():
            await self._news.wait()
        return self._last_report

    async def send(self, message: Mapping[str, Any]) -> None:
        """Send it a line; nothing if it has ended."""
        assert self._process.stdin is not None
        with contextlib.suppress(ConnectionError):
            self._process.stdin.write(_encode_line(message))
            await self._process.stdin.drain()

    async def stop(self, within_s: float) -> int:
        """Ask it to end, and kill it if it takes longer. Returns its exit code."""
        with contextlib.suppress(ProcessLookupError):
            self._process.send_signal(signal.SIGTERM)
        try:
            async with asyncio.timeout(within_s + _KILL_AFTER_S):
                code = await self._process.wait()
        except TimeoutError:
            self.kill()
            code = await self._process.wait()
        await self._reading
        return code

    def kill(self) -> None:
        with contextlib.suppress(ProcessLookupError):
            self._process.kill()

    async def _read(self) -> None:
        """Until it ends. Its own processes may hold its output open for longer."""
        lines = asyncio.create_task(self._read_lines(), name="cantata:hosted-lines")
        try:
            await self._process.wait()
            async with asyncio.timeout(1.0):
                await asyncio.shield(lines)
        except TimeoutError:
            pass
        finally:
            lines.cancel()
            with contextlib.suppress(asyncio.CancelledError):
                await lines
            self._news.set()

    async def _read_lines(self) -> None:
        assert self._process.stdout is not None
        while line := await self._process.stdout.readline():
            last_report = json.loads(line)
            assert isinstance(last_report, dict), "our own process speaks JSON objects"
            self._last_report, self._last_report_s = last_report, time.monotonic()
            self._news.set()


async def start_process(module: str, arguments: Mapping[str, Any]) -> ActorProcess:
    """Run a module as a separate process.

    Args:
        module: run as `python -m`; it calls `serve_actor` of `cantata.distributed.ray.hosted`.
        arguments: its first line.

    Raises:
        OSError: no process is available.
    """
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        "-m",
        module,
        stdin=asyncio.subprocess.PIPE,
        stdout=asyncio.subprocess.PIPE,
        limit=_MAX_LINE,
    )
    hosted = ActorProcess(process)
    await hosted.send(arguments)
    return hosted


def _encode_line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"


_SAY_EVERY_S = 0.5


class Actor:
    """The actor, as its process sees it. `output`: where it reads."""

    def __init__(self, lines: asyncio.StreamReader, output: TextIO) -> None:
        self._lines = lines
        self._output = output

    async def hear(self) -> Mapping[str, Any] | None:
        """Its next line; None: it has ended."""
        line = await self._lines.readline()
        if not line:
            return None
        received = json.loads(line)
        assert isinstance(received, dict), "the actor speaks JSON objects"
        return received

    def send_report(self, message: Mapping[str, Any]) -> None:
        """Report how this process is; does nothing if the actor has ended."""
        try:
            self._output.write(json.dumps(message) + "\n")
            self._output.flush()
        except BrokenPipeError:
            return


async def connect_actor() -> tuple[Actor, Mapping[str, Any]]:
    """The actor and this process's arguments. Afterwards, whatever is printed goes to the log.
    Raises EOFError: it has ended already."""
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = asyncio.StreamReader(limit=_MAX_LINE)
    loop = asyncio.get_running_loop()
    await loop.connect_read_pipe(lambda: asyncio.StreamReaderProtocol(lines), sys.stdin)
    actor = Actor(lines, output)
    arguments = await actor.hear()
    if arguments is None:
        raise EOFError("the actor ended before it sent any arguments")
    return actor, arguments


@asynccontextmanager
async def hosted(
    actor: Actor,
    report: Callable[[], Mapping[str, Any] | None],
    hear: Callable[[Mapping[str, Any]], None] = lambda message: None,
) -> AsyncIterator[None]:
    """Inside, this process reports to the actor again and again how it is. When the actor ends,
    this process ends as if it had been asked to: what runs may finish.

    Args:
        actor: as `connect_actor` found it.
        report: what to report; None: nothing yet.
    """
    saying = asyncio.create_task(_keep_saying(actor, report), name="cantata:say")
    hearing = asyncio.create_task(_keep_hearing(actor, hear), name="cantata:hear")
    try:
        yield
    finally:
        for task in (saying, hearing):
            task.cancel()
        await asyncio.wait({saying, hearing})


async def _keep_saying(actor: Actor, report: Callable[[], Mapping[str, Any] | None]) -> None:
    while True:
        status = report()
        if status is not None:
            actor.send_report(status)
        await asyncio.sleep(_SAY_EVERY_S)


async def _keep_hearing(actor: Actor, hear: Callable[[Mapping[str, Any]], None]) -> None:
    while (received := await actor.hear()) is not None:
        hear(received)
    os.kill(os.getpid(), signal.SIGTERM)
