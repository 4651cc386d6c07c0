"""One pipeline's requests: registered with every stage at once, ended in one place.

Runs in the api's event loop. It keeps what a request has open (`PcmStream`), passes PCM on, and
makes sure that whatever ends a request - its last sample, a fault, the caller - frees it in every
stage before `open` returns.
"""

from __future__ import annotations

import asyncio
import contextlib
import logging
import shutil
import tempfile
from collections.abc import AsyncGenerator, AsyncIterator, Callable, Mapping
from contextlib import asynccontextmanager
from pathlib import Path

from cantata.config import Deployment
from cantata.connectors.socket import listen
from cantata.contract.chunks import PcmChunk
from cantata.contract.errors import CantataError, ChunkTimeout, RequestFailed, StageDied
from cantata.contract.messages import (
    Abort,
    Aborted,
    Credit,
    Extend,
    Failed,
    Measured,
    Output,
    Register,
    StageCapacity,
)
from cantata.contract.pipeline import PipelineSpec
from cantata.contract.request import Payload, PipelineRequest
from cantata.contract.steps import StepCost
from cantata.engine.stage_handle import Report, StageHandle, StageState
from cantata.engine.stage_process import StageLaunch
from cantata.logs import LogFormat
from cantata.scheduling.places import StagePace, places

logger = logging.getLogger(__name__)

ABORT_DEADLINE_S = 10.0
CREDITS_PER_WINDOW = 4
"""Credit goes back when a listener has taken this part of what the last stage may make ahead."""
RESTART_BACKOFF_S = (0.5, 2.0, 8.0, 30.0)
"""Waits before the first, second... restart of a stage; the last one repeats."""


class PcmStream:
    """One open request's samples, as they are made."""

    def __init__(self, request_id: str, deadline_s: float) -> None:
        self.request_id = request_id
        self.finished = False
        """Every stage has let go of the request by itself."""
        self.pending_aborts: set[str] = set()
        self.abort_done = asyncio.Event()
        self._deadline_s = deadline_s
        self._next_index = 0
        # Bounded by the credit that the last stage was given, not by the queue.
        self._arrived: asyncio.Queue[PcmChunk | CantataError] = asyncio.Queue()

    def arrive(self, item: PcmChunk | CantataError) -> None:
        """What a stage sent for this request."""
        self._arrived.put_nowait(item)

    async def next(self) -> PcmChunk:
        """The next chunk.

        Raises:
            ChunkTimeout: nothing came in time.
            CantataError: a stage failed the request.
        """
        try:
            async with asyncio.timeout(self._deadline_s):
                item = await self._arrived.get()
        except TimeoutError:
            raise ChunkTimeout(f"no sound for {self._deadline_s:g} s") from None
        if isinstance(item, CantataError):
            raise item
        if item.index != self._next_index:
            raise RequestFailed(f"expected PCM chunk {self._next_index}, got {item.index}")
        self._next_index += 1
        self.finished = item.final
        return item


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
        self._checkpoint = checkpoint
        self._deployment = deployment
        self._log_level = log_level
        self._log_format = log_format
        self._stages: dict[str, StageHandle] = {}
        self._launches: dict[str, StageLaunch] = {}
        self._capacities: dict[str, StageCapacity] = {}
        self._costs: dict[str, StepCost] = {}
        self._open: dict[str, PcmStream] = {}
        self._restarts: dict[str, int] = {}
        self._restarting: set[asyncio.Task[None]] = set()
        self._runtime_dir: Path | None = None
        self._tell_places: Callable[[int], None] | None = None

    @property
    def ready(self) -> bool:
        """Whether every stage takes requests."""
        states = [stage.state for stage in self._stages.values()]
        return len(states) == len(self._pipeline.stages) and set(states) == {StageState.READY}

    @property
    def chunk_timeout_s(self) -> float:
        """Seconds of silence after which a request fails."""
        return self._deployment.chunk_timeout_s

    @property
    def stages(self) -> Mapping[str, StageHandle]:
        """The stage processes by name."""
        return self._stages

    @property
    def slots(self) -> int:
        """Requests that every stage can hold at once."""
        return min(capacity.slots for capacity in self._capacities.values())

    @property
    def slots_in_use(self) -> int:
        """Requests that stages hold, or have not yet said to have freed."""
        return len(self._open)

    @property
    def places(self) -> int:
        """Requests that are served without a gap, by the stages' own measurements; the slots before
        there are any."""
        paces = [
            StagePace(self._costs[spec.name], self._capacities[spec.name].max_batch_frames)
            for spec in self._pipeline.stages
            if spec.name in self._costs
        ]
        return places(paces, self.output_capacity.frame_period_s, self.slots)

    def on_places(self, tell: Callable[[int], None]) -> None:
        """Have `places` told whenever it may have changed."""
        self._tell_places = tell

    @property
    def output_capacity(self) -> StageCapacity:
        """What the last stage said of itself; it knows the PCM's format."""
        return self._capacities[self._pipeline.output.name]

    async def start(self) -> None:
        """Start all stages in parallel; returns when all are ready.

        Raises:
            StageDied: a stage could not start; the others have been ended.
        """
        self._runtime_dir = Path(tempfile.mkdtemp(prefix="cantata-"))
        self._launches = self._plan_launches(self._runtime_dir)
        starting = [self._start_stage(name) for name in self._launches]
        results = await asyncio.gather(*starting, return_exceptions=True)
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            await self.stop(deadline_s=0)
            raise errors[0]

    async def stop(self, deadline_s: float) -> None:
        """Drain every stage until the deadline, then end its process."""
        for task in self._restarting:
            task.cancel()
        await asyncio.gather(*(stage.stop(deadline_s) for stage in self._stages.values()))
        for launch in self._launches.values():
            for listener in launch.inputs:
                listener.close()
        if self._runtime_dir is not None:
            shutil.rmtree(self._runtime_dir, ignore_errors=True)

    @asynccontextmanager
    async def open(self, request: PipelineRequest) -> AsyncIterator[PcmStream]:
        """Run one request; when the block is left, no stage holds anything of it.

        Raises:
            StageDied: a stage of the pipeline is not there.
        """
        stream = PcmStream(request.request_id, self._deployment.chunk_timeout_s)
        self._open[request.request_id] = stream
        try:
            await self._register(request)
            yield stream
        finally:
            # A second cancellation must not leave the request behind in a stage.
            await asyncio.shield(self._close(stream))

    async def extend(self, stream: PcmStream, stage: str, payload: Payload, *, final: bool) -> None:
        """Pass on input that a request's stage still waits for.

        Raises:
            StageDied: the stage is not there.
        """
        await self._stages[stage].send(Extend(stream.request_id, payload, final))

    async def chunks(self, stream: PcmStream) -> AsyncGenerator[PcmChunk, None]:
        """The stream's chunks that hold something; each sample taken gives the last stage credit
        for another."""
        output = self._pipeline.output.name
        # Often enough that the stage never waits for a listener who keeps up.
        due = self.output_capacity.credit_samples // CREDITS_PER_WINDOW
        owed = 0
        while not stream.finished:
            chunk = await stream.next()
            if len(chunk.samples) or chunk.words:
                yield chunk
            owed += len(chunk.samples)
            if owed >= due and not stream.finished:
                await self._stages[output].send(Credit(stream.request_id, owed))
                owed = 0

    def _plan_launches(self, folder: Path) -> dict[str, StageLaunch]:
        sockets = {
            (edge.source, edge.target): folder / f"{edge.source}-{edge.target}"
            for edge in self._pipeline.edges
        }
        listeners = {ends: listen(path) for ends, path in sockets.items()}
        launches = {}
        for spec in self._pipeline.stages:
            inputs = self._pipeline.inputs_of(spec.name)
            outputs = self._pipeline.outputs_of(spec.name)
            launches[spec.name] = StageLaunch(
                title=f"cantata:{spec.name}:0",
                spec=spec,
                checkpoint=self._checkpoint,
                deployment=self._deployment.stages[spec.name],
                async_chunk=self._deployment.async_chunk,
                inputs=tuple(listeners[edge.source, edge.target] for edge in inputs),
                outputs=tuple(sockets[edge.source, edge.target] for edge in outputs),
                log_level=self._log_level,
                log_format=self._log_format,
            )
        return launches

    async def _start_stage(self, name: str) -> None:
        stage = StageHandle(self._launches[name], self._on_message, self._on_death)
        self._stages[name] = stage
        self._capacities[name] = await stage.start()

    async def _register(self, request: PipelineRequest) -> None:
        # The last stage first: a chunk must find its request wherever it arrives.
        for spec in reversed(self._pipeline.stages):
            payload = request.inputs.get(spec.name)
            await self._stages[spec.name].send(
                Register(request.request_id, payload, request.batch, request.runs_dry_s)
            )

    async def _close(self, stream: PcmStream) -> None:
        try:
            if not stream.finished:
                await self._abort(stream)
        finally:
            del self._open[stream.request_id]

    async def _abort(self, stream: PcmStream) -> None:
        alive = {n: s for n, s in self._stages.items() if s.state is StageState.READY}
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
            case Failed(request_id, error):
                if (stream := self._open.get(request_id)) is not None:
                    stream.arrive(error)
            case Aborted(request_ids):
                for request_id in request_ids:
                    self._acknowledge_abort(request_id, stage)
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

    def _on_death(self, name: str, error: StageDied) -> None:
        for request_id, stream in self._open.items():
            stream.arrive(error)
            self._acknowledge_abort(request_id, name)
        if name in self._capacities:  # it has been ready once: worth another try
            task = asyncio.create_task(self._restart(name), name=f"restart:{name}")
            self._restarting.add(task)
            task.add_done_callback(self._restarting.discard)

    async def _restart(self, name: str) -> None:
        attempt = self._restarts.get(name, 0)
        self._restarts[name] = attempt + 1
        await asyncio.sleep(RESTART_BACKOFF_S[min(attempt, len(RESTART_BACKOFF_S) - 1)])
        logger.warning("restarting stage %s", name)
        await self._stages[name].stop(deadline_s=0)
        with contextlib.suppress(StageDied):  # its own death has planned the next attempt
            await self._start_stage(name)
