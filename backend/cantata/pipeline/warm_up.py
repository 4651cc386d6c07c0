"""Requests that run all code of a pipeline before anybody listens."""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Callable, Coroutine

from cantata.contract.data.errors import ChunkTimeout, first_error

logger = logging.getLogger(__name__)


async def warm_up_together(
    warm_up: Callable[[], Coroutine[None, None, None]],
    requests: int,
    deadline_s: float,
    model: str,
) -> None:
    """Warm up with so many requests at a time. On a busy machine their output may come too late for
    a listener; nobody listens yet, so they are tried again.

    Args:
        warm_up: one request.
        requests: how many.
        deadline_s: no attempt begins later, by the monotonic clock.
        model: for the log.

    Raises:
        ChunkTimeout: the stages make nothing, also in an attempt that ends after the deadline.
        CantataError: whatever else a request raises, at once.
    """
    while True:
        try:
            async with asyncio.TaskGroup() as group:
                for number in range(requests):
                    group.create_task(warm_up(), name=f"{model}:warm-up:{number}")
        except ExceptionGroup as errors:
            error = first_error(errors)
            if not isinstance(error, ChunkTimeout) or time.monotonic() > deadline_s:
                raise error from errors
            logger.warning("%s: warming up takes long (%s); trying again", model, error)
        else:
            return
