"""Runs `fake_server_process.py` for a test."""

from __future__ import annotations

import asyncio
import json
import os
import sys
from asyncio.subprocess import PIPE, Process
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx


@dataclass
class ServerProcess:
    """A running server process."""

    url: str
    process: Process

    @property
    def socket_url(self) -> str:
        return self.url.replace("http", "ws") + "/v1/audio/speech/stream"

    def let_sound(self) -> None:
        """Waiting and later utterances begin to sound."""
        assert self.process.stdin is not None
        self.process.stdin.write(b"\n")

    async def ended(self) -> tuple[int, bytes]:
        """Its exit status, and all that it logged."""
        async with asyncio.timeout(60):
            _, log = await self.process.communicate()
        assert self.process.returncode is not None
        return self.process.returncode, log


async def until_metric(http: httpx.AsyncClient, line: str) -> None:
    """Wait until a server's metrics have this line."""
    async with asyncio.timeout(60):
        while line not in (await http.get("/metrics")).text:  # noqa: ASYNC110
            await asyncio.sleep(0.01)


@asynccontextmanager
async def server_process(
    limit: Callable[[], None] | None = None, **options: Any
) -> AsyncIterator[ServerProcess]:
    """Start one, and kill it if it is still running at the end.

    Args:
        limit: called in the process before Python starts.
        options: see `fake_server_process.py`.
    """
    script = Path(__file__).with_name("fake_server_process.py")
    process = await asyncio.create_subprocess_exec(
        sys.executable,
        str(script),
        json.dumps(options),
        stdin=PIPE,
        stdout=PIPE,
        stderr=PIPE,
        preexec_fn=limit,
        env={**os.environ, "PYTHONUNBUFFERED": "1"},
    )
    try:
        assert process.stdout is not None
        async with asyncio.timeout(60):
            url = (await process.stdout.readline()).decode().strip()
        assert url, (await process.communicate())[1].decode()
        yield ServerProcess(url, process)
    finally:
        if process.returncode is None:
            process.kill()
            await process.communicate()
