"""One edge at a replica: its link, and the requests that arrive over it."""

from __future__ import annotations

import asyncio
import logging
from collections import Counter
from collections.abc import Callable, Mapping
from contextlib import nullcontext

from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.data.faults import Fault, to_fault
from cantata.contract.transcription_service import TranscriptionService
from cantata.distributed.chat_messages import AnswerRequest
from cantata.distributed.link.errors import LinkLost, ProtocolError
from cantata.distributed.link.frames import Frame
from cantata.distributed.link.heartbeat import Heartbeat
from cantata.distributed.link.hello import LinkSide
from cantata.distributed.link.link import Link
from cantata.distributed.link.stream import LinkStream
from cantata.distributed.link.tls import LinkSocket
from cantata.distributed.messages import (
    DrawRequest,
    FrameKind,
    ModelState,
    ReplicaState,
    Reports,
    SpeakRequest,
    TranscribeRequest,
)
from cantata.distributed.model_advertisement import Advertisement
from cantata.distributed.replica.in_flight import InFlightLimiter
from cantata.distributed.replica.request_runs import answer, draw, speak, transcribe
from cantata.distributed.serialization import decode, encode
from cantata.utils.logs import log_for_request

logger = logging.getLogger(__name__)

_FINISH_S = 1.0
"""Limit for an edge to read what it was sent."""


class EdgeSession:
    """Serves one link until it is lost.

    Args:
        sock: whose other end has shown that it has the key.
        on_change: called when a request has begun or ended.
    """

    def __init__(
        self,
        sock: LinkSocket,
        peer: str,
        heartbeat: Heartbeat,
        service: TranscriptionService,
        limiter: InFlightLimiter,
        on_change: Callable[[], None],
    ) -> None:
        self._service, self._limiter, self._on_change = service, limiter, on_change
        self._tasks: set[asyncio.Task[None]] = set()
        """One task for each request; it ends by itself, once its work does."""
        self._working: set[asyncio.Task[Fault | None]] = set()
        self._ordered: Counter[str] = Counter()
        self.link = Link(sock, LinkSide.ACCEPTED, heartbeat, peer, on_stream=self._on_opened)

    async def run(self) -> None:
        """Serve; returns once everything that came over the link is freed."""
        self.link.begin()
        try:
            error = await self.link.wait_until_lost()
            logger.info("edge %s: %s", self.link.peer, error.reason)
        finally:
            self.link.close()
            if self._tasks:
                await asyncio.wait(self._tasks)

    async def finish(self) -> None:
        """Cut off unfinished requests; close the link once the edge has read everything else."""
        for work in list(self._working):
            self._cut_off(work)
        if self._tasks:
            await asyncio.wait(self._tasks)
        await self.link.finish(_FINISH_S)

    def announce(self, announcement: Advertisement) -> None:
        self.link.message(FrameKind.ANNOUNCE, *encode(announcement))

    def report_state(self, *, ready: bool, now: bool) -> None:
        """What the heartbeats carry from now on; `now`: send one at once."""
        state = ReplicaState(ready, self._limiter.draining, self._list_states() if ready else {})
        self.link.set_state(b"".join(bytes(part) for part in encode(state)), now=now)

    def _list_states(self) -> Mapping[str, ModelState]:
        names = self._limiter.names
        return {name: self._limiter.state(name, self._ordered[name]) for name in names}

    def _on_opened(self, stream: LinkStream) -> None:
        task = asyncio.create_task(self._serve(stream), name=f"request:{stream.number}")
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _serve(self, stream: LinkStream) -> None:
        """Serve one stream until it is done, or until the edge ends it."""
        working = asyncio.create_task(self._work(stream), name=f"work:{stream.number}")
        leaving = asyncio.create_task(stream.wait_until_ended(), name=f"leave:{stream.number}")
        self._working.add(working)
        await asyncio.wait({working, leaving}, return_when=asyncio.FIRST_COMPLETED)
        has_left = leaving.done()
        leaving.cancel()
        self._cut_off(working)
        await asyncio.wait({working, leaving})
        if not working.cancelled():
            fault = working.result()
            stream.end(*(encode(fault) if fault else ()))
        elif has_left:
            stream.end()
        # Otherwise it is cut off, which the edge must not take for the work's end.
        self._on_change()

    def _cut_off(self, work: asyncio.Task[Fault | None]) -> None:
        """Once: a second cancellation would interrupt what the first one frees."""
        if work in self._working:
            self._working.discard(work)
            work.cancel()

    async def _work(self, stream: LinkStream) -> Fault | None:
        try:
            frame = await stream.receive()
            if frame is not None:
                await self._do(stream, frame)
        except ProtocolError as error:
            self.link.close(error.reason)
        except LinkLost:
            pass  # nobody is left to report to
        except CantataError as error:
            return to_fault(error)
        except Exception:
            # The boundary of a request: its unforeseen fault must not end the others.
            logger.exception("a request failed")
            return to_fault(RequestFailed("the replica failed in an unforeseen way; see its log"))
        return None

    async def _do(self, stream: LinkStream, frame: Frame) -> None:
        match frame.kind:
            case FrameKind.SPEAK:
                message = decode(frame.body, SpeakRequest)
                with log_for_request(message.work_id):
                    await self._speak(stream, message)
            case FrameKind.ANSWER:
                wanted = decode(frame.body, AnswerRequest)
                with log_for_request(wanted.work_id):
                    await self._answer(stream, wanted)
            case FrameKind.DRAW:
                picture = decode(frame.body, DrawRequest)
                with log_for_request(picture.work_id):
                    await self._draw(stream, picture)
            case FrameKind.TRANSCRIBE:
                window = decode(frame.body, TranscribeRequest)
                with log_for_request(window.work_id):
                    await self._transcribe(stream, window)
            case FrameKind.ASK_REPORTS:
                reports = Reports(tuple(await self._service.collect_stage_reports()))
                await stream.send(FrameKind.REPORTS, *encode(reports))
            case kind:
                raise ProtocolError(f"a stream began with a frame of kind {kind}")

    async def _speak(self, stream: LinkStream, message: SpeakRequest) -> None:
        self._ordered[message.model] += not message.batch
        model = self._service.get_model(message.model)
        # A file render waits in the model's admission.
        with self._limiter.count_request(
            model.name, gated=not message.batch, live=not message.batch
        ):
            self._on_change()
            await speak(stream, message, model)

    async def _answer(self, stream: LinkStream, message: AnswerRequest) -> None:
        live = not message.options.batch
        self._ordered[message.model] += live
        model = self._service.get_chat_model(message.model)
        # One for which nobody waits does so in the model's admission.
        with self._limiter.count_request(model.name, gated=live, live=live):
            self._on_change()
            await answer(stream, message, model)

    async def _draw(self, stream: LinkStream, message: DrawRequest) -> None:
        self._ordered[message.model] += 1
        model = self._service.get_image_model(message.model)
        # Its own admission forecasts when it would be done.
        with self._limiter.count_request(model.name, gated=False):
            self._on_change()
            await draw(stream, message, model)

    async def _transcribe(self, stream: LinkStream, message: TranscribeRequest) -> None:
        live = not message.request.batch
        self._ordered[message.model] += live
        model = self._service.get_transcription_model(message.model)
        # Its own admission knows whether a slot is free; files wait there, and then take one.
        place = nullcontext() if live else self._limiter.hold_place(model.name)
        with self._limiter.count_request(model.name, gated=False, live=live):
            self._on_change()
            await transcribe(stream, message, model, place)
