"""uvicorn's server, with connections accepted and closed as streams require."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from collections.abc import Iterable
from types import FrameType

import uvicorn

from cantata.api.connections.acceptor import Acceptor, ConnectionGate
from cantata.api.connections.dead_peers import DeadPeers
from cantata.api.connections.descriptors import connection_limit
from cantata.api.connections.http import TimedHttp
from cantata.api.drain import Drain
from cantata.api.settings import ConnectionSettings
from cantata.ticks import until_tick

logger = logging.getLogger(__name__)

_POLL_S = 0.05
_TICK_S = 1.0
"""Seconds between updates of the responses' `date`; uvicorn's own timer wakes an idle server ten
times a second."""
_FORCED_STOP_S = 2.0


class SpeechServer(uvicorn.Server):
    """Accepts within the descriptor limit, closes what is half-sent or dead, and drains.

    The first SIGTERM or SIGINT lets running utterances end, up to a limit; a second ends at once.
    """

    def __init__(self, config: uvicorn.Config, limits: ConnectionSettings, drain: Drain) -> None:
        super().__init__(config)
        self._limits = limits
        self._drain = drain
        self._acceptors: list[Acceptor] = []
        self._dead_peers: DeadPeers | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Drain, then end `serve`; safe in signal handlers and other threads."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        """Start the app, then accept from these sockets."""
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=[])
        connections = self.server_state.connections
        gate = ConnectionGate(
            self._limits.max_connections or connection_limit(), lambda: len(connections)
        )

        def make_protocol() -> TimedHttp:
            return TimedHttp(
                self.config, self.server_state, self.lifespan.state, self._limits, gate
            )

        self._acceptors = [Acceptor(listener, gate, make_protocol) for listener in sockets or ()]
        self._dead_peers = DeadPeers(self._transports, self._limits.unanswered_s)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: reject new requests; the second one ends everything."""
        if self.should_exit and sig == signal.SIGTERM:
            # uvicorn itself hurries only at a second SIGINT.
            self.force_exit = True
        self._drain.begin()
        super().handle_exit(sig, frame)
        self.stop()

    async def main_loop(self) -> None:
        """Run until `stop`."""
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(until_tick(_TICK_S)):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests end, then close everything."""
        await self._let_requests_end()
        for acceptor in self._acceptors:
            acceptor.close()
        if self._dead_peers is not None:
            self._dead_peers.close()
        await super().shutdown(sockets)
        if self.force_exit:
            await self._stop_in_a_hurry()

    async def _let_requests_end(self) -> None:
        """Reject new requests, on new connections and old ones, because the server is stopping."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.drain_timeout_s
        self._drain.announce()
        while (self.server_state.tasks or self._drain.connections) and not self.force_exit:
            if loop.time() >= deadline:
                self._cut_off()
                return
            await asyncio.sleep(_POLL_S)

    def _cut_off(self) -> None:
        """End what is still running; uvicorn closes WebSockets, and the app Wyoming."""
        logger.warning(
            "%d requests did not end within %g s and are cut off",
            max(len(self.server_state.tasks), self._drain.connections),
            self._limits.drain_timeout_s,
        )
        for connection in list(self.server_state.connections):
            if isinstance(connection, TimedHttp):
                connection.cut_off()

    async def _stop_in_a_hurry(self) -> None:
        """Stop the stages; uvicorn would not stop them itself."""
        for task in self.server_state.tasks:
            task.cancel()
        try:
            async with asyncio.timeout(_FORCED_STOP_S):
                await self.lifespan.shutdown()
        except TimeoutError:
            logger.warning("the stages did not stop within %g s", _FORCED_STOP_S)

    def _transports(self) -> Iterable[asyncio.Transport]:
        return [connection.transport for connection in self.server_state.connections]
