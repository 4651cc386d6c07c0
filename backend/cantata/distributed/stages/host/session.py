"""One server's link to a stage host: one pipeline, its stages and its edges."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from functools import partial

from cantata.contract.data.errors import CantataError, StageDied
from cantata.contract.data.faults import to_fault
from cantata.contract.model.plugin import ModelPlugin
from cantata.distributed.link.errors import HeartbeatTimeout, LinkLost, ProtocolError
from cantata.distributed.link.frames import Frame
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.link.tls import LinkSocket
from cantata.distributed.serialization import decode, encode
from cantata.distributed.stages.host.pipeline import HostedPipeline, StageLogs, plan_hosted
from cantata.distributed.stages.host.stage import HostedStage
from cantata.distributed.stages.messages import (
    EdgeName,
    LaunchCommand,
    PipelineCommand,
    StageFrameKind,
)
from cantata.distributed.stages.transfer import forward_chunks, send_chunks
from cantata.distributed.stages.unix_edges import relay_from

logger = logging.getLogger(__name__)


class HostSession:
    """One server's connection, from its hello to the loss of the link.

    Args:
        sock: of the connection; closed here.
        plugins: the models that may be run, by name.
    """

    def __init__(
        self,
        sock: LinkSocket,
        peer: str,
        heartbeat: Heartbeat,
        plugins: Mapping[str, ModelPlugin],
        logs: StageLogs,
    ) -> None:
        self._peer, self._plugins, self._logs = peer, plugins, logs
        self._planned: asyncio.Task[HostedPipeline] | None = None
        self._trouble = ""
        """The last error; one that ends every stream is logged once."""
        self._tasks: set[asyncio.Task[None]] = set()
        self._link = Link(
            sock,
            LinkSide.ACCEPTED,
            heartbeat,
            f"server {peer}",
            on_stream=lambda stream: self._run(self._serve(stream)),
            on_message=self._hear,
        )

    async def run(self) -> None:
        """Until the link is lost; then nothing of the pipeline is left here."""
        self._link.begin()
        try:
            error = await self._link.wait_until_lost()
            is_fault = isinstance(error, ProtocolError | HeartbeatTimeout)
            logger.log(
                logging.WARNING if is_fault else logging.INFO,
                "server %s is gone: %s",
                self._peer,
                error.reason,
            )
        finally:
            self._link.close()
            for task in self._tasks:
                task.cancel()
            await asyncio.gather(*self._tasks, return_exceptions=True)
            if self._planned is not None:
                await asyncio.wait({self._planned})
                if self._planned.exception() is None:
                    await self._planned.result().close()

    def leave(self) -> None:
        """Tell the server that this host is about to stop."""
        self._link.message(StageFrameKind.LEAVING)

    def _hear(self, kind: int, body: bytearray) -> None:
        if kind != StageFrameKind.PIPELINE or self._planned is not None:
            raise ProtocolError(f"a frame of kind {kind} arrived on no stream")
        command = decode(body, PipelineCommand)
        logger.info(
            "server %s: stages %s of %s", self._peer, ", ".join(command.here), command.model
        )
        self._planned = asyncio.create_task(self._plan(command))

    async def _plan(self, command: PipelineCommand) -> HostedPipeline:
        # Reading parts of every file of a large model takes a while.
        pipeline = await asyncio.to_thread(plan_hosted, command, self._plugins, self._logs)
        pipeline.preload()
        return pipeline

    def _run(self, work: Coroutine[None, None, None]) -> None:
        task = asyncio.create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, stream: LinkStream) -> None:
        with suppress(LinkLost):
            frame = await stream.receive()
            if frame is None or self._planned is None:
                raise stream.reject(
                    ProtocolError("a stream was opened before its pipeline was named")
                )
            try:
                await self._serve_as(frame, stream, await asyncio.shield(self._planned))
            except CantataError as error:
                self._report(error)
                stream.end(*encode(to_fault(error)))
            except LinkLost:
                raise
            except Exception as error:  # the edge of a connection: its other streams go on
                self._report(error)
                stream.end(*encode(to_fault(StageDied(f"its host failed: {error!r}"))))

    def _report(self, error: Exception) -> None:
        if str(error) == self._trouble:
            return
        self._trouble = str(error)
        unforeseen = None if isinstance(error, CantataError) else error
        logger.error("server %s: %s", self._peer, error, exc_info=unforeseen)

    async def _serve_as(self, frame: Frame, stream: LinkStream, pipeline: HostedPipeline) -> None:
        """What the first frame opened the stream for.

        Raises:
            ConfigError: no such stage or edge is here.
            LinkLost: the link is over.
        """
        try:
            match frame.kind:
                case StageFrameKind.LAUNCH:
                    command = decode(frame.body, LaunchCommand)
                    await HostedStage(stream, pipeline, command).run()
                case StageFrameKind.EDGE_THERE:
                    await forward_chunks(stream, pipeline.inlet(decode(frame.body, EdgeName)).put)
                case StageFrameKind.EDGE_BACK:
                    listener = pipeline.get_exit(decode(frame.body, EdgeName))
                    await relay_from(listener, partial(send_chunks, stream))
                case kind:
                    raise ProtocolError(f"no stream begins with a frame of kind {kind}")
        except ProtocolError as error:
            raise stream.reject(error) from error
