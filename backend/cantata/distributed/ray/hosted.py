"""A process that one of Ray's actors hosts.

The actor supervises; a separate process does the work, so that its interpreter has none of Ray's
threads. The two exchange lines of JSON: the first line to the process is its arguments, further
ones are news for it; it reports how it is. It ends by itself when the actor does, which it notices
as the end of its input.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import signal
import sys
import time
from collections.abc import Mapping
from typing import Any

_LONGEST_LINE = 1 << 20
_KILL_AFTER_S = 10.0
"""Added to the time that the process is given to end."""


class ActorProcess:
    """One process; made by `start_process`, ended by `stop` or by itself.

    Args:
        process: with pipes for its input and output.
    """

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
        """Its process id."""
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
            self._process.stdin.write(_line(message))
            await self._process.stdin.drain()

    async def stop(self, within_s: float) -> int:
        """Ask it to end, and kill it if it takes longer. Returns its exit code.

        Args:
            within_s: for what runs to end.
        """
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
        module: run as `python -m`; it calls `serve_actor` of `cantata.distributed.ray.hosting`.
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
        limit=_LONGEST_LINE,
    )
    hosted = ActorProcess(process)
    await hosted.send(arguments)
    return hosted


def _line(message: Mapping[str, Any]) -> bytes:
    return json.dumps(message).encode() + b"\n"
