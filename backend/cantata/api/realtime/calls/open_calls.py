"""The calls of one server: each runs on after the request that opened it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import ExitStack
from typing import Any, Protocol

from cantata.api.realtime.client_events import AnyClientEvent
from cantata.api.realtime.server_events import ServerEvent
from cantata.contract.data.errors import CallNotFound, Overloaded

logger = logging.getLogger(__name__)


class CallObserver(Protocol):
    def notify(self, events: Sequence[ServerEvent]) -> None:
        """Take events, without waiting."""
        ...

    def close(self) -> None: ...


class OpenCall(Protocol):
    """A call whose offer was answered."""

    @property
    def id(self) -> str: ...

    @property
    def sidebands(self) -> set[CallObserver]:
        """All who see its events besides the caller."""
        ...

    async def run(self) -> None: ...

    def describe(self) -> dict[str, Any]:
        """Its session, as clients see it."""
        ...

    async def handle_event(self, event: AnyClientEvent) -> None:
        """Do what its caller, or a sideband, asks for. Raises CantataError: it is refused."""
        ...

    def abort(self) -> None: ...


class OpenCalls:
    def __init__(self) -> None:
        self._running: dict[str, asyncio.Task[None]] = {}
        self._calls: dict[str, OpenCall] = {}

    @property
    def count(self) -> int:
        return len(self._running)

    def check_room(self, max_calls: int) -> None:
        """Raises `Overloaded` if `max_calls` are open."""
        if len(self._running) >= max_calls:
            raise Overloaded(f"{max_calls} calls are open, the most that this server takes")

    def start(self, call: OpenCall, held: ExitStack) -> None:
        """Let a call run."""

        async def run_and_free() -> None:
            try:
                with held:
                    await call.run()
            except Exception:
                # The edge of the call: no request waits for it any more.
                logger.exception("call %s broke", call.id)
            finally:
                del self._running[call.id], self._calls[call.id]

        self._calls[call.id] = call
        self._running[call.id] = asyncio.create_task(run_and_free(), name=f"call:{call.id}")

    def find(self, call_id: str) -> OpenCall:
        """An open call. Raises CallNotFound: none of this id is open."""
        call = self._calls.get(call_id)
        if call is None:
            raise CallNotFound(f"no call {call_id[:64]!r} is open", "call_id")
        return call

    async def close(self) -> None:
        """End all of them, and wait until nothing of them is left."""
        running = list(self._running.values())
        for task in running:
            task.cancel()
        if running:
            await asyncio.wait(running)
