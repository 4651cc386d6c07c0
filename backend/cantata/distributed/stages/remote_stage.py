"""A stage process on a stage host, as the pipeline sees it."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress

from cantata.contract.data.errors import StageDied
from cantata.contract.data.faults import Fault, to_error
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Output,
    Ping,
    Pong,
    Register,
    StageCapacity,
)
from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.frames import END, Frame
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.serialization import decode, encode
from cantata.distributed.stages.host_link import HostLink
from cantata.distributed.stages.messages import (
    DrainCommand,
    LaunchCommand,
    PongEvent,
    StageDeath,
    StageFrameKind,
    StageReady,
)
from cantata.distributed.stages.transfer import decode_event, encode_for_link
from cantata.distributed.stages.unfinished import Unfinished
from cantata.ipc.encoded import Heads
from cantata.ipc.wire import Buffer
from cantata.pipeline.shared_process import ENDING_DEADLINE_S
from cantata.pipeline.stage_handle import PING_DEADLINE_S
from cantata.pipeline.stage_process import Death, Report, StageState

logger = logging.getLogger(__name__)


class RemoteStage:
    """Implements `pipeline.stage_process.StageProcess` over a stream.

    Args:
        ports: of the stage, whose chunks come to this machine.
        on_message: called with every report, in order.
        on_death: called once when a process that was ready ends without having been asked to, or
            its host is lost.
    """

    def __init__(
        self,
        name: str,
        link: HostLink,
        ports: Collection[str],
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, Death], None],
    ) -> None:
        self.name = name
        self.host = str(link.address)
        self.state = StageState.STARTING
        self.pid: int | None = None
        self.startup_s = 0.0
        self.exit_code: int | None = None
        self.last_pong: Pong | None = None
        self.rss_bytes = 0
        self._link = link
        self._unfinished = Unfinished(ports)
        self._on_message, self._on_death = on_message, on_death
        self._stream: LinkStream | None = None
        self._reading: asyncio.Task[None] | None = None
        self._ready: asyncio.Future[StageCapacity] = asyncio.get_running_loop().create_future()
        self._ended_by: StageDied | None = None
        """Why it ended without having been asked to."""
        self._asked: dict[int, asyncio.Future[StageDied | None]] = {}
        """By number of the ping; the error, if no answer can come any more."""
        self._pings = 0

    async def wait_until_possible(self) -> None:
        """Return once its host is connected."""
        await self._link.linked()

    async def start(self, deadline_s: float) -> StageCapacity:
        """Have the host start the process and wait until it has loaded its model.

        Raises:
            StageDied: it ended instead, the host refuses it, or it was not ready in time; nothing
                is left of it.
        """
        loop = asyncio.get_running_loop()
        began_s = loop.time()
        try:
            async with asyncio.timeout(deadline_s):
                while (capacity := await self._launch(began_s + deadline_s)) is None:
                    logger.debug("%s: its host was lost while it loaded", self._title)
        except TimeoutError:
            connected = self._stream is not None
            await self.stop(0)
            why = "" if connected else f": {self._link.trouble}"
            raise StageDied(f"{self._title} was not ready within {deadline_s:g} s{why}") from None
        except BaseException:  # cancellation, too, must leave nothing behind
            await self.stop(0)
            raise
        self.startup_s = loop.time() - began_s
        self.state = StageState.READY
        logger.info("%s ready after %.1f s", self._title, self.startup_s)
        return capacity

    async def send(self, message: Register | Extend | Abort | Credit) -> None:
        body = encode_for_link(message)
        if isinstance(message, Register):
            self._unfinished.began(message.request_id)
        await self._send(StageFrameKind.COMMAND, body)

    async def get_counts(self) -> Mapping[str, int]:
        """What the stage holds now, by name; raises as `ask` does."""
        return (await self.ask()).counts

    async def ask(self, deadline_s: float = PING_DEADLINE_S) -> Pong:
        self._pings += 1
        number = self._pings
        answer = self._asked[number] = asyncio.get_running_loop().create_future()
        try:
            async with asyncio.timeout(deadline_s):
                await self._send(StageFrameKind.PING, encode(Ping(number)))
                if (error := await answer) is not None:
                    raise error
        finally:
            del self._asked[number]
        assert self.last_pong is not None, "it comes before the answer"
        return self.last_pong

    async def stop(self, deadline_s: float) -> None:
        stream, reading = self._stream, self._reading
        if self.state.is_running and stream is not None:
            self.state = StageState.DRAINING
            drain = DrainCommand(deadline_s)
            await self._wait_until_ended(stream, deadline_s + ENDING_DEADLINE_S, drain)
        self.state = StageState.ENDED
        if stream is not None:
            stream.end()
            await self._wait_until_ended(stream, 2 * ENDING_DEADLINE_S)
        if reading is not None and reading is not asyncio.current_task():
            reading.cancel()
            await asyncio.wait({reading})

    def leave(self) -> None:
        """Its host is about to stop."""
        if self.state is StageState.READY:
            self.state = StageState.LEAVING

    def passed(self, heads: Heads) -> None:
        """Chunks with these heads came from the stage on an edge."""
        self._unfinished.passed(heads.last)

    @property
    def _title(self) -> str:
        return f"stage {self.name!r} on {self.host}"

    @property
    def _is_over(self) -> bool:
        return self.state is StageState.ENDED

    async def _launch(self, due_s: float) -> StageCapacity | None:
        """Launch it once there is a link; None: the link was lost before the stage was ready.

        Args:
            due_s: when it is to be ready, by the event loop's clock.

        Raises:
            StageDied: it ended instead, or the host refuses it.
        """
        loop = asyncio.get_running_loop()
        link = await self._link.link()
        self._ready = loop.create_future()
        try:
            stream = self._stream = link.open()
            command = LaunchCommand(self.name, due_s - loop.time())
            stream.post(StageFrameKind.LAUNCH, *encode(command))
            self._reading = asyncio.create_task(self._read(stream), name=f"{self.name}:read")
            capacity = await self._ready
        except LinkLost:
            return None
        if self._ended_by is not None:  # its end came together with its readiness
            raise self._ended_by
        return capacity

    async def _wait_until_ended(
        self, stream: LinkStream, limit_s: float, drain: DrainCommand | None = None
    ) -> None:
        """Send the command, which may have to wait for credit; wait for the end of the stream."""
        try:
            async with asyncio.timeout(limit_s):
                if drain is not None:
                    with suppress(StageDied):
                        await self._send(StageFrameKind.DRAIN, encode(drain))
                await stream.wait_until_ended()
        except TimeoutError:
            logger.warning("%s did not end within %g s", self._title, limit_s)

    async def _send(self, kind: StageFrameKind, body: tuple[Buffer, ...]) -> None:
        if self._stream is None or self._is_over:
            raise StageDied(f"{self._title} is not running")
        try:
            await self._stream.send(kind, *body)
        except LinkLost as error:
            raise StageDied(f"{self._title} is lost: {error.reason}") from error
        if self._is_over:  # while the command waited for credit
            raise StageDied(f"{self._title} is not running")

    async def _read(self, stream: LinkStream) -> None:
        why = "its host has ended it"
        try:
            while (frame := await stream.receive()) is not None:
                self._on_frame(frame)
        except ProtocolError as error:
            why = stream.reject(error).reason
        except LinkLost as error:
            if not self._ready.done():
                self._ready.set_exception(error)
                return
            why = f"its host is lost: {error.reason}"
        except Exception as error:  # a stage whose messages cannot be handled cannot be used
            logger.exception("%s: its message could not be handled", self._title)
            why = f"its supervision failed: {error!r}"
        self._mark_lost(self._build_death(why))

    def _on_frame(self, frame: Frame) -> None:
        if frame.kind != StageFrameKind.EVENT:
            self._on_state(frame)
            return
        event = decode_event(frame.body)
        match event:
            case Output(chunks):
                self._unfinished.passed((one.request_id, one.port) for one in chunks if one.final)
            case Failed(request_id):
                self._unfinished.ended(request_id)
            case Aborted(request_ids):
                for request_id in request_ids:
                    self._unfinished.ended(request_id)
        self._on_message(self.name, event)

    def _on_state(self, frame: Frame) -> None:
        body = frame.body
        match frame.kind:
            case StageFrameKind.PONG:
                event = decode(body, PongEvent)
                self.last_pong, self.rss_bytes = event.pong, event.rss_bytes
                self._on_message(self.name, event.pong)
            case StageFrameKind.ANSWERED:
                answer = self._asked.get(decode(body, Ping).number)
                if answer is not None and not answer.done() and self.last_pong is not None:
                    answer.set_result(None)
            case StageFrameKind.READY:
                ready = decode(body, StageReady)
                self.pid = ready.pid
                if not self._ready.done():
                    self._ready.set_result(ready.capacity)
            case StageFrameKind.DIED:
                self._mark_lost(decode(body, StageDeath).death(self.host))
            case kind if kind == END:
                error = to_error(decode(body, Fault))
                self._mark_lost(self._build_death(f"cannot start: {error.message}"))
            case kind:
                raise ProtocolError(f"a frame of kind {kind} arrived from a stage")

    def _build_death(self, why: str) -> Death:
        """A death that the process itself cannot report. No request is to blame."""
        error = StageDied(f"{self._title}: {why}")
        return Death(error, None, None, {}, False, self._unfinished.requests)

    def _mark_lost(self, death: Death) -> None:
        """The process is gone: from here on it gets no requests."""
        if self.state in (StageState.ENDED, StageState.DRAINING):
            return
        level = logging.INFO if self.state is StageState.LEAVING else logging.ERROR
        logger.log(level, "%s", death.error)
        was_ready, self.state = self.state.is_running, StageState.ENDED
        self.exit_code, self._ended_by = death.exit_code, death.error
        if self._stream is not None:
            self._stream.end()  # commands that wait for credit wait no longer
        if not self._ready.done():
            self._ready.set_exception(death.error)
        for answer in self._asked.values():
            if not answer.done():
                answer.set_result(death.error)
        if was_ready:
            self._on_death(self.name, death)
