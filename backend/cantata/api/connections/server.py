"""uvicorn's server, with connections accepted and closed as streams require."""

from __future__ import annotations

import asyncio
import contextlib
import logging
import signal
import socket
from asyncio import FIRST_COMPLETED
from collections.abc import Callable, Iterable
from types import FrameType

import uvicorn

from cantata.api.connections.acceptor import Acceptor, ConnectionGate, compute_connection_limit
from cantata.api.connections.dead_peers import DeadPeers
from cantata.api.connections.http import TimedHttp
from cantata.api.connections.shared_port import SharedPort
from cantata.api.server.drain import Drain
from cantata.api.settings import ConnectionSettings
from cantata.utils.intervals import seconds_to_next_interval

logger = logging.getLogger(__name__)

_POLL_S = 0.05
_TICK_S = 1.0
"""Seconds between updates of the responses' `date`; uvicorn's own timer wakes an idle server ten
times a second."""
_FORCED_STOP_S = 2.0
_READY_WITHIN_S = 10.0
"""A server that shares its port leaves new connections to the others until it is ready, but no
longer than this."""


class SpeechServer(uvicorn.Server):
    """Accepts within the descriptor limit, closes what is half-sent or dead, and drains.

    The first SIGTERM or SIGINT lets running utterances end, up to a limit; a second ends at once.

    Args:
        limits: time limits, and the number of connections.
        drain: is told when the server stops.
        ready: set once requests can be served, or never will be.
    """

    def __init__(
        self,
        config: uvicorn.Config,
        limits: ConnectionSettings,
        drain: Drain,
        ready: asyncio.Event,
        on_accepting: Callable[[], None],
    ) -> None:
        super().__init__(config)
        self._limits = limits
        self._drain = drain
        self._ready = ready
        self._on_accepting = on_accepting
        self._gate: ConnectionGate | None = None
        self._acceptors: dict[socket.socket, Acceptor] = {}
        self._shared: SharedPort | None = None
        self._joining: asyncio.Task[None] | None = None
        self._dead_peers: DeadPeers | None = None
        self._loop: asyncio.AbstractEventLoop | None = None
        self._stopping = asyncio.Event()

    def stop(self) -> None:
        """Drain, then end `serve`; safe in signal handlers and other threads."""
        self.should_exit = True
        if self._loop is not None:
            self._loop.call_soon_threadsafe(self._stopping.set)

    async def startup(self, sockets: list[socket.socket] | None = None) -> None:
        self._loop = asyncio.get_running_loop()
        await super().startup(sockets=[])
        connections = self.server_state.connections
        self._gate = ConnectionGate(
            self._limits.max_connections or compute_connection_limit(), lambda: len(connections)
        )
        self._dead_peers = DeadPeers(self._list_transports, self._limits.unanswered_s)
        for sock in sockets or ():
            if sock.getsockopt(socket.SOL_SOCKET, socket.SO_ACCEPTCONN):
                self._accept_from(sock)
                self._on_accepting()
            else:
                self._share(sock)

    def handle_exit(self, sig: int, frame: FrameType | None) -> None:
        """A signal: end after what runs; the second one ends everything."""
        if self.should_exit and sig == signal.SIGTERM:
            # uvicorn itself hurries only at a second SIGINT.
            self.force_exit = True
        self._drain.begin()
        super().handle_exit(sig, frame)
        self.stop()

    async def main_loop(self) -> None:
        while not await self.on_tick(0):
            with contextlib.suppress(TimeoutError):
                async with asyncio.timeout(seconds_to_next_interval(_TICK_S)):
                    await self._stopping.wait()

    async def shutdown(self, sockets: list[socket.socket] | None = None) -> None:
        """Let running requests end, then close everything."""
        await self._leave_port()
        await self._let_requests_end()
        for listener in list(self._acceptors):
            self._end_accepting(listener)
        if self._shared is not None:
            self._shared.close()
        if self._dead_peers is not None:
            self._dead_peers.close()
        await super().shutdown(sockets)
        if self.force_exit:
            await self._stop_in_a_hurry()

    def _accept_from(self, listener: socket.socket) -> None:
        gate = self._gate
        assert gate is not None

        def make_protocol() -> TimedHttp:
            return TimedHttp(
                self.config, self.server_state, self.lifespan.state, self._limits, gate
            )

        self._acceptors[listener] = Acceptor(listener, gate, make_protocol)

    def _end_accepting(self, listener: socket.socket) -> None:
        self._acceptors.pop(listener).close()

    def _share(self, bound: socket.socket) -> None:
        self._drain.rejects = False
        self._shared = SharedPort(bound, self._accept_from, self._end_accepting)
        self._joining = asyncio.create_task(self._join(self._shared), name="cantata:join-port")

    async def _join(self, port: SharedPort) -> None:
        if not port.alone:
            waits = [asyncio.create_task(e.wait()) for e in (self._ready, self._stopping)]
            await asyncio.wait(waits, timeout=_READY_WITHIN_S, return_when=FIRST_COMPLETED)
            for wait in waits:
                wait.cancel()
        if self.should_exit:
            return
        try:
            await port.join()
        except OSError as error:
            logger.error("cannot listen any more, another server has taken the port: %s", error)
            self.stop()
        else:
            self._on_accepting()

    async def _leave_port(self) -> None:
        """Another server that shares the port takes new connections over. If there is none, they
        are accepted here, and their requests rejected."""
        if self._shared is not None and self._joining is not None:
            await self._joining
            self._drain.rejects = not await self._shared.leave()

    def _is_busy(self) -> bool:
        """Whether a request runs, or may still come on a connection accepted before others took
        the port over."""
        assert self._gate is not None
        expected = 0 if self._drain.rejects else self._gate.open
        return bool(self.server_state.tasks or self._drain.connections or expected)

    async def _let_requests_end(self) -> None:
        """End connections after their requests, because the server is stopping."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._limits.drain_timeout_s
        self._drain.announce()
        while self._is_busy() and not self.force_exit:
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

    def _list_transports(self) -> Iterable[asyncio.Transport]:
        return [connection.transport for connection in self.server_state.connections]
