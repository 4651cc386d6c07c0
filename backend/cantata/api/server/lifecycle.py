"""Starts the service behind an open socket, and stops it with the app."""

from __future__ import annotations

import asyncio
import logging
from enum import StrEnum

from cantata.contract.data.errors import CantataError
from cantata.contract.service import SpeechService

logger = logging.getLogger(__name__)


class Phase(StrEnum):
    """The service's state; it only moves down this list."""

    NEW = "new"
    STARTING = "starting"
    """Stages load; the socket answers `/health`, speech is rejected with 503."""
    STARTED = "started"
    FAILED = "failed"
    """A model could not be loaded; the entry point ends the process."""
    STOPPED = "stopped"


class NotReady(CantataError):
    """The service is still loading, could not be loaded, or is stopping."""

    code = "not_ready"


class ServiceLifecycle:
    """Owns the one task that runs `service.start()`."""

    def __init__(self, service: SpeechService) -> None:
        self._service = service
        self._task: asyncio.Task[None] | None = None
        self.phase = Phase.NEW
        self.error: str | None = None
        self.settled = asyncio.Event()
        """Set when the service is started, failed or stopped."""

    def begin(self) -> None:
        """Start the service in the background; further calls have no effect."""
        if self._task is not None:
            return
        self.phase = Phase.STARTING
        self._task = asyncio.create_task(self._start(), name="cantata:service-start")

    async def end(self) -> None:
        """Stop the service, even in the middle of its start."""
        if self._task is not None:
            self._task.cancel()
            await asyncio.wait([self._task])
        self.phase = Phase.STOPPED
        self.settled.set()
        await self._service.stop()

    def check(self) -> None:
        """Raise `NotReady` unless the service was started."""
        if self.phase is Phase.STARTED:
            return
        if self.phase is Phase.FAILED:
            raise NotReady(f"the speech service could not be started: {self.error}")
        raise NotReady(f"the speech service is not ready ({self.phase.value})")

    async def _start(self) -> None:
        try:
            await self._service.start()
        except Exception as error:
            # The edge of the start: whatever a model's loading raises must show in /health and
            # end the process with a message instead of leaving a task's exception unread.
            self.phase, self.error = Phase.FAILED, str(error) or type(error).__name__
            if isinstance(error, CantataError):
                logger.error("the speech service could not be started: %s", error)
            else:
                logger.exception("the speech service could not be started")
            self.settled.set()
        else:
            self.phase = Phase.STARTED
            self.settled.set()
