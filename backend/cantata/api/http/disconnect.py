"""Work that ends when its HTTP client disconnects."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine

from starlette.types import Receive

from cantata.contract.data.errors import first_error


async def until_disconnect(receive: Receive, work: Coroutine[None, None, None], name: str) -> None:
    """Run `work`; a disconnect cancels it and waits until it has cleaned up.

    The request's body must have been read. Errors of `work` are raised as they are.
    """
    try:
        async with asyncio.TaskGroup() as group:
            working = group.create_task(work, name=name)
            watching = group.create_task(_cancel_on_disconnect(receive, working), name=f"{name}:rx")
            working.add_done_callback(lambda _: watching.cancel())
    except BaseExceptionGroup as errors:
        raise first_error(errors) from None


async def _cancel_on_disconnect(receive: Receive, working: asyncio.Task[None]) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass
    working.cancel()
