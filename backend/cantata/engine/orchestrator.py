"""One pipeline's requests: registered with every stage at once, ended in one place.

Runs in the api's event loop. It tracks a request's open parts (`PcmStream`), passes PCM on, and
ensures that whatever ends a request - its last sample, a fault, the caller - frees it in every
stage before `open` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Coroutine, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cantata.config import Deployment
from cantata.contract.data.chunks import PcmChunk
from cantata.contract.data.errors import CantataError, StageDied
from cantata.contract.data.request import Payload, PipelineRequest
from cantata.contract.model.pipeline import PipelineSpec
from cantata.contract.process.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Measured,
    Output,
    Pong,
    Register,
    StageCapacity,
)
from cantata.contract.process.steps import StepCost
from cantata.engine.output_stream import PcmStream
from cantata.engine.restarts import RestartHistory
from cantata.engine.stage_handle import Death, Report, StageHandle, StageState
from cantata.engine.supervision import Supervisor
from cantata.engine.suspects import Suspects
from cantata.logs import LogFormat
from cantata.scheduling.places import StagePace, places

logger = logging.getLogger(__name__)

ABORT_DEADLINE_S = 10.0
CREDITS_PER_WINDOW = 4
"""Credit is returned when a listener has taken this part of what the last stage may make ahead."""


class Orchestrator:
    """Starts a pipeline's stage processes and runs requests through them."""

    def __init__(
        self,
        pipeline: PipelineSpec,
        checkpoint: Path,
        deployment: Deployment,
        log_level: int,
        log_format: LogFormat = LogFormat.TEXT,
    ) -> None:
        self._pipeline = pipeline
        self._deployment = deployment
        self._supervisor = Supervisor(
            pipeline,
            checkpoint,
            deployment,
            log_level,
            log_format,
            on_message=self._on_message,
            on_death=self._on_death,
        )
        self._costs: dict[str, StepCost] = {}
        self._open: dict[str, PcmStream] = {}
        self._tell_places: Callable[[int], None] | None = None
        self._suspects = Suspects()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> bool:
        """Whether every stage accepts requests."""
        return self._supervisor.ready

    @property
    def restarts(self) -> Mapping[str, RestartHistory]:
        """Of each stage, by name."""
        return self._supervisor.history

    @property
    def quarantined(self) -> int:
        """Requests that are rejected because they ended a stage process twice."""
        return self._suspects.quarantined

    @property
    def chunk_timeout_s(self) -> float:
        """Seconds of silence after which a request fails."""
        return self._deployment.chunk_timeout_s

    @property
    def stages(self) -> Mapping[str, StageHandle]:
        """The stage processes by name."""
        return self._supervisor.stages

    @property
    def slots(self) -> int:
        """Requests that every stage can hold at once."""
        return min(capacity.slots for capacity in self._supervisor.capacities.values())

    @property
    def slots_in_use(self) -> int:
        """Requests that stages hold, or have not yet confirmed as freed."""
        return len(self._open)

    @property
    def places(self) -> int:
        """Requests that are served without gaps, by the stages' own measurements; the slots before
        there are any."""
        capacities = self._supervisor.capacities
        paces = [
            StagePace(self._costs[spec.name], capacities[spec.name].max_batch_frames)
            for spec in self._pipeline.stages
            if spec.name in self._costs
        ]
        return places(paces, self.output_capacity.frame_period_s, self.slots)

    def on_places(self, tell: Callable[[int], None]) -> None:
        """Call this with `places` whenever it may have changed."""
        self._tell_places = tell

    @property
    def output_capacity(self) -> StageCapacity:
        """The last stage's own report; it knows the PCM's format."""
        return self._supervisor.capacities[self._pipeline.output.name]

    async def start(self) -> None:
        """Start all stages in parallel; returns when all are ready.

        Raises:
            StageDied: a stage could not start; the others have been ended.
        """
        await self._supervisor.start()

    async def until_ready(self, timeout_s: float) -> None:
        """Return when every stage accepts requests.

        Raises:
            StageDied: one is not ready in time.
        """
        try:
            async with asyncio.timeout(timeout_s):
                await self._supervisor.all_ready.wait()
        except TimeoutError:
            raise StageDied("a stage is down and is being started again") from None

    def check(self, request: PipelineRequest) -> None:
        """Raises Quarantined if the request has ended a stage process twice."""
        self._suspects.check(request.inputs)

    async def stop(self, deadline_s: float) -> None:
        """Drain every stage until the deadline, then end its process."""
        await self._supervisor.stop(deadline_s)

    @asynccontextmanager
    async def open(self, request: PipelineRequest) -> AsyncIterator[PcmStream]:
        """Run one request; when the block is left, no stage holds any part of it. If a stage died,
        the others free it as soon as they can.

        Raises:
            Quarantined: it has ended a stage process twice.
            StageDied: a stage of the pipeline is not running.
        """
        stream = PcmStream(request, self._deployment.chunk_timeout_s)
        async with self._suspects.admit(stream):
            self._open[request.request_id] = stream
            try:
                await self._register(request)
                yield stream
            finally:
                # A second cancellation must not leave the request behind in a stage.
                closing = self._in_background(self._close(stream), f"close:{stream.request_id}")
                # WHY not after a death: the other stages may wait for the dead one's successor.
                if not stream.lost:
                    await asyncio.shield(closing)

    async def extend(self, stream: PcmStream, stage: str, payload: Payload, *, final: bool) -> None:
        """Pass on input that a request's stage still waits for.

        Raises:
            Quarantined: the text so far has ended a stage process twice.
            StageDied: the stage is not running.
        """
        stream.content.append(payload)
        self._suspects.check(*stream.content)
        await self.stages[stage].send(Extend(stream.request_id, payload, final))

    async def chunks(self, stream: PcmStream) -> AsyncGenerator[PcmChunk, None]:
        """The stream's non-empty chunks; each sample taken gives the last stage credit
        for another."""
        output = self._pipeline.output.name
        # Often enough that the stage never waits for a client that keeps up.
        due = self.output_capacity.credit_samples // CREDITS_PER_WINDOW
        owed = 0
        while not stream.finished:
            chunk = await stream.next()
            if len(chunk.samples) or chunk.words:
                yield chunk
            owed += len(chunk.samples)
            if owed >= due and not stream.finished:
                await self.stages[output].send(Credit(stream.request_id, owed))
                owed = 0

    async def _register(self, request: PipelineRequest) -> None:
        # The last stage first: a chunk must find its request wherever it arrives.
        for spec in reversed(self._pipeline.stages):
            payload = request.inputs.get(spec.name)
            await self.stages[spec.name].send(
                Register(
                    request.request_id,
                    payload,
                    request.batch,
                    request.runs_dry_s,
                    request.stretch,
                )
            )

    async def _close(self, stream: PcmStream) -> None:
        try:
            if not stream.finished:
                await self._abort(stream)
        finally:
            del self._open[stream.request_id]

    async def _abort(self, stream: PcmStream) -> None:
        alive = {n: s for n, s in self.stages.items() if s.state is StageState.READY}
        stream.pending_aborts = set(alive)
        for stage in alive.values():
            with contextlib.suppress(StageDied):  # on_death takes it off the list
                await stage.send(Abort((stream.request_id,)))
        if not stream.pending_aborts:
            return
        try:
            async with asyncio.timeout(ABORT_DEADLINE_S):
                await stream.abort_done.wait()
        except TimeoutError:
            late = sorted(stream.pending_aborts)
            logger.error("request %s: no answer to its abort from %s", stream.request_id, late)

    def _on_message(self, stage: str, message: Report) -> None:
        match message:
            case Output(chunks):
                for chunk in chunks:
                    if (stream := self._open.get(chunk.request_id)) is not None:
                        stream.arrive(chunk)
                        self._suspects.progressed(stream, chunk, self.output_capacity)
                        if chunk.final:
                            self._supervisor.useful()
            case Failed(request_id, error):
                if (stream := self._open.get(request_id)) is not None:
                    stream.arrive(error)
            case Aborted(request_ids):
                for request_id in request_ids:
                    self._acknowledge_abort(request_id, stage)
            case Pong(held=held):
                forgotten = tuple(request_id for request_id in held if request_id not in self._open)
                if forgotten:
                    self._reclaim(stage, forgotten)
            case Measured(cost):
                self._costs[stage] = cost
                if self._tell_places is not None:
                    self._tell_places(self.places)

    def _acknowledge_abort(self, request_id: str, stage: str) -> None:
        stream = self._open.get(request_id)
        if stream is not None and stage in stream.pending_aborts:
            stream.pending_aborts.discard(stage)
            if not stream.pending_aborts:
                stream.abort_done.set()

    def _reclaim(self, stage: str, request_ids: tuple[str, ...]) -> None:
        """Have a stage free requests that have ended here, even if their first abort was lost."""
        logger.warning("stage %s still holds requests that have ended: %s", stage, request_ids)

        async def abort() -> None:
            with contextlib.suppress(StageDied):
                await self.stages[stage].send(Abort(request_ids))

        self._in_background(abort(), f"reclaim:{stage}")

    def _in_background(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _on_death(self, name: str, death: Death) -> None:
        guilty = self._suspects.died(name, death, self._open)
        if guilty:
            self._supervisor.history[name].forgive()
        for request_id, stream in self._open.items():
            error: CantataError = guilty.get(request_id, death.error)
            stream.lost = True
            stream.arrive(error)
            self._acknowledge_abort(request_id, name)
