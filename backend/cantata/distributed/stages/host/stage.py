"""One stage process on this machine, for a server elsewhere that commands it over a stream."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine
from contextlib import suppress
from typing import Any

from cantata.contract.data.errors import CantataError, StageDied
from cantata.contract.data.faults import to_fault
from cantata.contract.process.messages import Ping, Pong, Register
from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.frames import Frame
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.serialization import decode, encode
from cantata.distributed.stages.host.pipeline import HostedPipeline
from cantata.distributed.stages.messages import (
    DrainCommand,
    LaunchCommand,
    PongEvent,
    StageDeath,
    StageFrameKind,
    StageReady,
)
from cantata.distributed.stages.transfer import StageCommand, decode_command, encode_for_link
from cantata.ipc.wire import Buffer
from cantata.pipeline.stage_handle import StageHandle
from cantata.pipeline.stage_process import Death, Report

logger = logging.getLogger(__name__)

_FrameParts = tuple[StageFrameKind, tuple[Buffer, ...]]


class HostedStage:
    """Stands in for the server at one stage process, and for the process at the server.

    Args:
        stream: the server's, opened with the command.

    Raises:
        ConfigError: the stage does not run here.
    """

    def __init__(
        self, stream: LinkStream, pipeline: HostedPipeline, command: LaunchCommand
    ) -> None:
        self._stream, self._pipeline, self._command = stream, pipeline, command
        launch = pipeline.launch(command.stage)
        self._handle = StageHandle(launch, pipeline.silence_s, self._on_report, self._on_death)
        self._outgoing: asyncio.Queue[_FrameParts | None] = asyncio.Queue()
        """For the server. The client's credit bounds what stages make for it."""
        self._finished = asyncio.Event()
        """The process has died, or is drained."""
        self._background: set[asyncio.Task[None]] = set()

    async def run(self) -> None:
        """Run the stage from the server's command to the end of its process; ends the stream."""
        sending = asyncio.create_task(self._send_loop())
        serving = asyncio.create_task(self._serve())
        fault: tuple[Buffer, ...] = ()
        try:
            await self._wait_for_first(
                serving, self._stream.wait_until_ended(), self._finished.wait()
            )
            if serving.done():
                serving.result()
        except ProtocolError as error:
            self._stream.reject(error)
        except (CantataError, OSError) as error:
            known = error if isinstance(error, CantataError) else StageDied(str(error))
            fault = encode(to_fault(known))
        finally:
            await _to_its_end(self._end(serving, sending, fault))

    async def _end(
        self,
        serving: asyncio.Task[None],
        sending: asyncio.Task[None],
        fault: tuple[Buffer, ...],
    ) -> None:
        """End the process, say what is left to be said, then end the stream."""
        await _on_cancelled(serving, *self._background)
        await self._handle.stop(0)
        self._outgoing.put_nowait(None)
        await self._wait_for_first(sending, self._stream.wait_until_ended())
        await _on_cancelled(sending)
        self._stream.end(*fault)

    @staticmethod
    async def _wait_for_first(*works: Coroutine[Any, Any, object] | asyncio.Task[None]) -> None:
        """Wait for the first of these to end; then cancel the coroutines among them."""
        tasks = {asyncio.ensure_future(work) for work in works}
        try:
            await asyncio.wait(tasks, return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in tasks - set(works):
                task.cancel()

    async def _serve(self) -> None:
        """Start the process, then follow the server's messages, until it ends its side."""
        capacity = await self._handle.start(self._command.deadline_s)
        assert self._handle.pid is not None
        self._enqueue(StageFrameKind.READY, StageReady(capacity, self._handle.pid))
        while (frame := await self._stream.receive()) is not None:
            with suppress(StageDied):  # its death is on its way
                await self._handle_frame(frame)

    async def _handle_frame(self, frame: Frame) -> None:
        match frame.kind:
            case StageFrameKind.COMMAND:
                await self._forward(decode_command(frame.body, self._pipeline.packages))
            case StageFrameKind.PING:
                self._spawn(self._answer_ping(decode(frame.body, Ping)))
            case StageFrameKind.DRAIN:
                self._spawn(self._drain(decode(frame.body, DrainCommand)))
            case kind:
                raise ProtocolError(f"a stage takes no frame of kind {kind}")

    async def _forward(self, command: StageCommand) -> None:
        await self._handle.send(command)
        if isinstance(command, Register):
            self._pipeline.registered(self._command.stage, command.request_id)

    async def _answer_ping(self, ping: Ping) -> None:
        with suppress(StageDied, TimeoutError):
            await self._handle.ask()  # the answer is passed on like any other
            self._enqueue(StageFrameKind.ANSWERED, ping)

    async def _drain(self, command: DrainCommand) -> None:
        await self._handle.stop(command.deadline_s)
        self._finished.set()

    def _spawn(self, work: Coroutine[Any, Any, None]) -> None:
        task = asyncio.create_task(work)
        self._background.add(task)
        task.add_done_callback(self._background.discard)

    def _on_report(self, _: str, message: Report) -> None:
        if isinstance(message, Pong):
            self._enqueue(StageFrameKind.PONG, PongEvent(message, self._handle.rss_bytes))
        else:
            self._outgoing.put_nowait((StageFrameKind.EVENT, encode_for_link(message)))

    def _on_death(self, _: str, death: Death) -> None:
        self._enqueue(StageFrameKind.DIED, StageDeath.of(death))
        self._finished.set()

    def _enqueue(self, kind: StageFrameKind, message: object) -> None:
        self._outgoing.put_nowait((kind, encode(message)))

    async def _send_loop(self) -> None:
        with suppress(LinkLost):
            while (event := await self._outgoing.get()) is not None:
                kind, parts = event
                await self._stream.send(kind, *parts)


async def _to_its_end(work: Coroutine[Any, Any, None]) -> None:
    """A cancellation waits for it: else a link that is lost meanwhile would leave the process."""
    task = asyncio.create_task(work)
    try:
        await asyncio.shield(task)
    except asyncio.CancelledError:
        await asyncio.wait({task})
        raise


async def _on_cancelled(*tasks: asyncio.Task[None]) -> None:
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)
