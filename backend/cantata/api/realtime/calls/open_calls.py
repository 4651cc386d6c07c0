"""The calls of one server: each runs on after the request that opened it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine
from contextlib import ExitStack
from typing import Any

from cantata.contract.data.errors import CallNotFound, Overloaded

logger = logging.getLogger(__name__)


class OpenCalls:
    """Open calls by their ids."""

    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}
        self._hang_up: dict[str, Callable[[], None]] = {}

    @property
    def count(self) -> int:
        """How many are open."""
        return len(self._running)

    def check_room(self, most: int) -> None:
        """Raises `Overloaded` if `most` are open."""
        if len(self._running) >= most:
            raise Overloaded(f"{most} calls are open, the most that this server takes")

    def start(
        self,
        call_id: str,
        run: Callable[[], Coroutine[Any, Any, None]],
        hang_up: Callable[[], None],
        held: ExitStack,
    ) -> None:
        """Let a call run.

        Args:
            call_id: of no other.
            run: the call, to its end.
            hang_up: ends it soon.
            held: what it holds meanwhile.
        """

        async def run_and_free() -> None:
            try:
                with held:
                    await run()
            except Exception:
                # The edge of the call: no request waits for it any more.
                logger.exception("call %s broke", call_id)
            finally:
                del self._running[call_id], self._hang_up[call_id]

        self._hang_up[call_id] = hang_up
        self._running[call_id] = asyncio.create_task(run_and_free(), name=f"call:{call_id}")

    def hang_up(self, call_id: str) -> None:
        """End a call.

        Raises:
            CallNotFound: none of this id is open.
        """
        end = self._hang_up.get(call_id)
        if end is None:
            raise CallNotFound(f"no call {call_id[:64]!r} is open", "call_id")
        end()

    async def close(self) -> None:
        """End all of them, and wait until nothing of them is left."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
