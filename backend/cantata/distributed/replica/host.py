"""A replica: one service behind a listening socket, from its start until it has drained."""

from __future__ import annotations

import asyncio
import logging
import socket
from collections.abc import Collection, Coroutine, Mapping
from dataclasses import dataclass

from cantata.contract.transcription_service import TranscriptionService
from cantata.distributed.key import LinkKey
from cantata.distributed.link.accepting import LinkAcceptor
from cantata.distributed.link.connecting import get_address
from cantata.distributed.link.heartbeat import BEAT_S, Heartbeat
from cantata.distributed.link.tls import LinkSocket
from cantata.distributed.model_advertisement import Advertisement, build_advertisement
from cantata.distributed.replica.in_flight import InFlightLimiter
from cantata.distributed.replica.session import EdgeSession
from cantata.utils.intervals import seconds_to_next_interval

logger = logging.getLogger(__name__)
MAX_EDGES = 256
"""Links at the same time, including those whose hello is not over."""


@dataclass(frozen=True, slots=True)
class ModelStatus:
    places: int
    """Orders that may run."""
    free: int
    """Orders that would be admitted now."""
    in_use: int
    """Orders that are being served."""
    waiting: int
    """Those of them whose start the model's admission still delays."""


@dataclass(frozen=True, slots=True)
class ReplicaStatus:
    ready: bool
    """Every model accepts requests."""
    draining: bool
    """It finishes what it speaks and takes nothing new."""
    edges: int
    models: Mapping[str, ModelStatus]


class ReplicaHost:
    """Serves a service's models to edges.

    Args:
        service: started and stopped here.
        identities: of its models, by name (`hash_identity`).
        listener: a listening socket; closed here.
        spare: names of the models that edges use only if they know of no other that transcribes.
    """

    def __init__(
        self,
        service: TranscriptionService,
        identities: Mapping[str, str],
        listener: socket.socket,
        key: LinkKey,
        spare: Collection[str] = (),
    ) -> None:
        self._service, self._identities, self._key = service, identities, key
        self._spare = spare
        self._listener = listener
        self.address = get_address(listener)
        """The address with the real port."""
        self._limiter = InFlightLimiter(
            {
                **service.models,
                **service.chat_models,
                **service.image_models,
                **service.transcription_models,
            }
        )
        self._heartbeat = Heartbeat()
        self._sessions: set[EdgeSession] = set()
        self._tasks: set[asyncio.Task[None]] = set()
        self._is_started = False
        self._report_scheduled = False
        """`_report_state` is about to run."""
        self._idle = asyncio.Event()

    @property
    def status(self) -> ReplicaStatus:
        """The replica's state as edges see it, and how many requests wait."""
        names = self._limiter.names if self._is_started else ()
        return ReplicaStatus(
            self._is_ready,
            self._limiter.draining,
            len(self._sessions),
            {name: self._build_status(name) for name in names},
        )

    def _build_status(self, name: str) -> ModelStatus:
        report = self._limiter.admission(name)
        return ModelStatus(
            report.places,
            self._limiter.free(name),
            self._limiter.in_use(name),
            report.waiting + report.waiting_batch,
        )

    @property
    def _is_ready(self) -> bool:
        return self._is_started and self._service.ready

    @property
    def _advertisement(self) -> Advertisement:
        return build_advertisement(self._service, self._identities, self._spare)

    async def start(self) -> None:
        """Accept edges at once; returns when the models are ready.

        Raises:
            ConfigError: a model cannot be served as configured.
            StageDied: a stage ended before it was ready.
        """
        door = LinkAcceptor(self._listener, self._key, "an edge", MAX_EDGES, self._serve)
        self._run(door.run(), "cantata:accept-edges")
        await self._service.start()
        self._is_started = True
        for session in self._sessions:
            session.announce(self._advertisement)
        self._report_state()
        self._run(self._report_states(), "cantata:tell-edges")

    async def drain(self, timeout_s: float) -> bool:
        """Take nothing new, say so to the edges, and return when all requests have ended.

        Returns:
            False: some have not ended within the limit.
        """
        self._limiter.draining = True
        self._report_state()
        try:
            async with asyncio.timeout(timeout_s):
                while self._limiter.in_flight:
                    self._idle.clear()
                    await self._idle.wait()
        except TimeoutError:
            logger.warning(
                "%d requests did not end within %g s and are cut off",
                self._limiter.in_flight,
                timeout_s,
            )
            return False
        return True

    async def stop(self) -> None:
        """End every link, every request and every stage; safe at any time and twice."""
        self._limiter.draining = True
        self._report_state()  # then an edge does not take the end of its link for a crash
        await asyncio.gather(*(session.finish() for session in self._sessions))
        for task in self._tasks:
            task.cancel()
        if self._tasks:
            await asyncio.wait(self._tasks)
        self._listener.close()
        self._heartbeat.close()
        await self._service.stop()

    def _run(self, work: Coroutine[None, None, None], name: str) -> None:
        task = asyncio.create_task(work, name=name)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, sock: LinkSocket, peer: str) -> None:
        session = EdgeSession(
            sock, peer, self._heartbeat, self._service, self._limiter, self._on_change
        )
        self._sessions.add(session)
        if self._is_started:
            session.announce(self._advertisement)
        session.report_state(ready=self._is_ready, now=True)
        try:
            await session.run()
        finally:
            self._sessions.discard(session)

    async def _report_states(self) -> None:
        """Places and waiting requests change by themselves."""
        while True:
            await asyncio.sleep(seconds_to_next_interval(BEAT_S))
            self._report_state(now=False)

    def _on_change(self) -> None:
        # Once for all requests of this turn of the loop, and not before the work on them.
        if not self._report_scheduled:
            self._report_scheduled = True
            asyncio.get_running_loop().call_soon(self._report_changes)
        if not self._limiter.in_flight:
            self._idle.set()

    def _report_changes(self) -> None:
        self._report_scheduled = False
        self._report_state()

    def _report_state(self, *, now: bool = True) -> None:
        for session in self._sessions:
            session.report_state(ready=self._is_ready, now=now)
