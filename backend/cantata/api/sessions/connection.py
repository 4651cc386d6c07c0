"""The core of every streaming protocol: a reader that always runs, and channels that speak.

How a connection ends:

| method | called when | queued speech | what the client gets |
|-|-|-|-|
| `close` | the client asks to close, or its last text is in | is spoken | `close_gracefully` |
| `stop` | the client wants silence, or its time is over | is dropped | `close_gracefully` |
| `abort` | the client has disconnected, or reads nothing | is dropped | nothing |
| `begin_drain` | the server stops | the current text is spoken | `close_with_error(GoingAway)` |
| an exception | the idle deadline, or a fault | is dropped | `close_with_error` |
"""

from __future__ import annotations

import asyncio
import logging
import uuid
from abc import ABC, abstractmethod
from collections.abc import Sequence
from contextlib import ExitStack

from cantata.api.context import ApiContext
from cantata.api.server.drain import GoingAway
from cantata.api.speech.outbox import Item, Outbox, OutboxFull
from cantata.api.speech.utterance_queue import Job, UtteranceQueue
from cantata.contract.data.errors import (
    CantataError,
    Overloaded,
    ProtocolViolation,
    get_first_error,
)
from cantata.metrics import EndReason

logger = logging.getLogger(__name__)

_CLOSE_TIMEOUT_S = 1.0
"""Time limit for sending the reason of an end."""


class IdleTimeout(ProtocolViolation):
    """The client sent nothing for too long and nothing was spoken."""

    code = "idle_timeout"


class Connection(ABC):
    """Owns everything of one client; `run` returns when nothing of it is left.

    Reading never waits for speaking or writing: a cancel and a disconnect act at once.
    """

    def __init__(
        self,
        context: ApiContext,
        protocol: str,
        idle_timeout_s: float,
        *,
        first_timeout_s: float | None = None,
    ) -> None:
        """
        Args:
            idle_timeout_s: longest time without a message or sound.
            first_timeout_s: until the first `touch`; None: the same.
        """
        self.context = context
        self.name = f"{protocol}:{uuid.uuid4().hex[:8]}"
        self._idle_timeout_s = idle_timeout_s
        self._timer = asyncio.timeout(first_timeout_s or idle_timeout_s)
        self._channels: set[Channel] = set()
        self._group: asyncio.TaskGroup | None = None
        self._closing = asyncio.Event()
        self.gone = False
        """The client has disconnected."""
        self._draining = False
        """Whether the server is stopping: the current text is the last one."""
        self._drained = False
        """Whether the drain ends the connection, not the client."""

    @abstractmethod
    def begin(self) -> None:
        """Open the channels that are there from the start."""

    @abstractmethod
    async def receive_loop(self) -> None:
        """Handle messages until the client disconnects; never waits for anything else."""

    @abstractmethod
    async def close_gracefully(self) -> None:
        """Close towards the client, after everything was sent."""

    @abstractmethod
    async def close_with_error(self, error: CantataError | None) -> None:
        """Send the reason for the end, and close. None: an unexpected fault."""

    def has_pending_text(self) -> bool:
        """Whether more of a text is expected, which the server waits for when it stops."""
        return False

    async def run(self) -> None:
        with ExitStack() as subscriptions:
            await self._serve(subscriptions)

    async def _serve(self, subscriptions: ExitStack) -> None:
        try:
            self.context.lifecycle.check()
            async with self._timer, asyncio.TaskGroup() as group:
                reader = group.create_task(self._receive(), name=f"{self.name}:read")
                async with asyncio.TaskGroup() as self._group:
                    self.begin()
                    subscriptions.enter_context(self.context.drain.subscribed(self.begin_drain))
                    await self._closing.wait()
                if self._drained:
                    await self._close_after_error(GoingAway())
                elif not self.gone:
                    await self.close_gracefully()
                reader.cancel()
        except TimeoutError:
            await self._close_after_error(self.build_timeout_error())
        except CantataError as error:
            await self._close_after_error(error)
        except BaseExceptionGroup as errors:
            # The edge of the connection: a fault ends this client's connection and no other.
            await self._close_after_fault(get_first_error(errors))

    def open(self, channel: Channel) -> None:
        assert self._group is not None
        self._channels.add(channel)
        self._group.create_task(self._run_channel(channel), name=f"{self.name}:write")

    def close(self) -> None:
        """End when what is queued has been spoken."""
        for channel in self._channels:
            channel.utterances.finish()
        self._closing.set()

    def stop(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        """End at once, with a closing message."""
        for channel in self._channels:
            channel.stop(reason)
        self._closing.set()

    def abort(self, reason: EndReason = EndReason.CLIENT_LEFT) -> None:
        """End at once, without a message: the client has disconnected, or reads nothing."""
        self.gone = True
        self.stop(reason)

    def touch(self) -> None:
        """Postpone the idle deadline. Sound is made faster than it is heard: a client is idle only
        when it has played it."""
        if self._timer.expired():
            return
        busy = any(channel.busy for channel in self._channels)
        heard_until = max((c.utterances.heard_until for c in self._channels), default=0.0)
        now = asyncio.get_running_loop().time()
        deadline = max(now, heard_until) + self._idle_timeout_s
        self._timer.reschedule(None if busy else deadline)

    def on_message_handled(self) -> None:
        """A message was handled; while the server stops, it may be the last of its text."""
        if self._draining and not self._closing.is_set() and not self.has_pending_text():
            self._drained = True
            self.close()

    def begin_drain(self) -> None:
        """End after the current text: the server is stopping."""
        self._draining = True
        self.on_message_handled()

    def build_timeout_error(self) -> CantataError:
        return IdleTimeout(f"nothing was sent or spoken for {self._idle_timeout_s:g} s")

    def check_not_draining(self) -> None:
        """Reject a new text while the server stops. Raises GoingAway: the server is stopping."""
        if self._draining:
            raise GoingAway()

    async def _receive(self) -> None:
        await self.receive_loop()
        logger.debug("%s disconnected", self.name)
        self.abort()

    async def _run_channel(self, channel: Channel) -> None:
        assert self._group is not None
        try:
            await channel.run(self._group)
        finally:
            self._channels.discard(channel)
            channel.free()
        self.touch()

    async def _close_after_fault(self, error: BaseException) -> None:
        if isinstance(error, OutboxFull):
            logger.warning("%s: %s", self.name, error)
            await self._close_after_error(ProtocolViolation(str(error)))
        elif isinstance(error, CantataError):
            await self._close_after_error(error)
        else:
            logger.error("%s broke", self.name, exc_info=error)
            await self._close_after_error(None)

    async def _close_after_error(self, error: CantataError | None) -> None:
        """Send a closing message, which the client may not read."""
        if self.gone:
            return
        try:
            async with asyncio.timeout(_CLOSE_TIMEOUT_S):
                await self.close_with_error(error)
        except TimeoutError:
            logger.debug("%s did not read the closing message", self.name)


class Channel(ABC):
    """One queue of utterances on a connection, with its outbox and writer."""

    def __init__(self, connection: Connection, max_ahead_s: float | None = None) -> None:
        context = connection.context
        self._connection = connection
        self.busy = False
        self.outbox = Outbox(context.settings.outbox_bytes)
        self.utterances = UtteranceQueue(
            self.outbox,
            context.metrics,
            context.settings.max_pending_utterances,
            self._set_busy,
            max_ahead_s,
        )

    @abstractmethod
    async def write(self, item: Item) -> None:
        """Send one item as the protocol's message."""

    async def end(self) -> None:  # noqa: B027
        """Announce the end; not called after a disconnect."""

    def free(self) -> None:  # noqa: B027
        """Free what `write` holds."""

    def queue(self, jobs: Sequence[Job]) -> None:
        """Add jobs, all or none. Raises Overloaded: too many wait."""
        if jobs and not self.utterances.has_room(len(jobs)):
            raise Overloaded("too much text of this connection is waiting; send it later")
        if jobs:
            self.utterances.add(jobs)

    def stop(self, reason: EndReason) -> None:
        """Drop everything, spoken and unspoken."""
        self.outbox.discard()
        self.utterances.stop(reason)

    async def run(self, group: asyncio.TaskGroup) -> None:
        """Speak and write until the speaker is finished or stopped."""
        group.create_task(self._speak(group), name=f"{self._connection.name}:speak")
        while (item := await self.outbox.get()) is not None:
            await self.write(item)
        if not self._connection.gone:
            await self.end()

    async def _speak(self, group: asyncio.TaskGroup) -> None:
        await self.utterances.run(group)
        self.outbox.close()

    def _set_busy(self, busy: bool) -> None:
        self.busy = busy
        self._connection.touch()
