"""The other end of `hosted`: the part of a process that an actor hosts."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from typing import Any, TextIO

_LONGEST_LINE = 1 << 20
_SAY_EVERY_S = 0.5


class Actor:
    """The actor, as its process sees it.

    Args:
        lines: what it sends.
        output: where it reads.
    """

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

    Raises:
        EOFError: it has ended already.
    """
    output = os.fdopen(os.dup(sys.stdout.fileno()), "w")
    os.dup2(sys.stderr.fileno(), sys.stdout.fileno())
    lines = asyncio.StreamReader(limit=_LONGEST_LINE)
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
        hear: gets what the actor sends.
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
