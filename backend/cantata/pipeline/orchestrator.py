"""One pipeline's requests: registered with every stage at once, ended in one place.

Runs in the api's event loop. It tracks open requests, passes their output on, and ensures that
whatever ends a request - its last chunk, a fault, the caller - frees it in every stage before
`open` returns.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Coroutine, Mapping, Sequence
from contextlib import asynccontextmanager
from pathlib import Path
from typing import cast

from cantata.config import Deployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import CantataError, StageDied
from cantata.contract.data.request import PipelineRequest, StageInput
from cantata.contract.model.pipeline import EdgeSpec, PipelineSpec
from cantata.contract.process.messages import (
    Aborted,
    Extend,
    Failed,
    ForwardCost,
    Output,
    Pong,
    Register,
    StageCapacity,
    StepCost,
    StepMeasured,
)
from cantata.pipeline.aborts import Aborts
from cantata.pipeline.crash_tracker import CrashTracker
from cantata.pipeline.gpu_memory import GpuMemory
from cantata.pipeline.idle_unload import IdleUnloader
from cantata.pipeline.output_stream import CreditReturn, OpenRequest, OutputStream
from cantata.pipeline.remote_stages import RemoteStages
from cantata.pipeline.stage_process import Death, Report, StageProcess
from cantata.pipeline.supervision import HostDrain, RestartHistory, Supervisor
from cantata.scheduling.capacity import StagePace, compute_places
from cantata.stages.process.measuring import count_frames
from cantata.utils.logs import LogFormat

STAGE_DOWN = "a stage is down and is being started again"


class Orchestrator:
    """Starts a pipeline's stage processes and runs requests through them.

    Args:
        remote_stages: has the stages whose deployment names a host; None: there are none.
        gpu_memory: of this machine, which other pipelines use too; None: none does.
    """

    def __init__(
        self,
        pipeline: PipelineSpec,
        checkpoint: Path,
        deployment: Deployment,
        log_level: int,
        log_format: LogFormat = LogFormat.TEXT,
        remote_stages: RemoteStages | None = None,
        gpu_memory: GpuMemory | None = None,
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
            on_leaving=lambda: self._host_drain.announce(),
            remote_stages=remote_stages,
            gpu_memory=gpu_memory,
        )
        self._idle_unloader = IdleUnloader(
            [spec.name for spec in pipeline.stages], self._supervisor, deployment.idle_unload_s
        )
        self._host_drain = HostDrain(self._supervisor.disconnect_draining)
        self._aborts = Aborts(self._supervisor)
        self._credit = CreditReturn(self._supervisor.stages, self._supervisor.capacities)
        self.forward_cost: ForwardCost | None = None
        """Of the stage that denoises, if there is one and it has measured its forwards."""
        self._costs: dict[str, StepCost] = {}
        self._open: dict[str, OpenRequest] = {}
        self._on_places: Callable[[int], None] | None = None
        self._crash_tracker = CrashTracker()
        self._background: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> bool:
        """Whether requests are accepted: every stage runs, or will for the next request."""
        return self._supervisor.ready or self._idle_unloader.unloaded

    @property
    def unloaded(self) -> bool:
        """Whether no stage runs because nobody has used the pipeline for a while."""
        return self._idle_unloader.unloaded

    @property
    def restarts(self) -> Mapping[str, RestartHistory]:
        return self._supervisor.history

    @property
    def quarantined(self) -> int:
        """Requests that are rejected because they ended a stage process twice."""
        return self._crash_tracker.quarantined

    @property
    def chunk_timeout_s(self) -> float:
        """Seconds of silence after which a request fails."""
        return self._deployment.chunk_timeout_s

    @property
    def start_timeout_s(self) -> float:
        """Seconds within which the pipeline must be ready."""
        return self._deployment.start_timeout_s

    @property
    def stages(self) -> Mapping[str, StageProcess]:
        return self._supervisor.stages

    @property
    def slots(self) -> int:
        """Requests that every stage can hold at once."""
        return min(capacity.slots for capacity in self._supervisor.capacities.values())

    def state_bytes(self, stage: str) -> int:
        """Memory of a stage's streaming state; 0: small, unknown, or not ready yet."""
        capacity = self._supervisor.capacities.get(stage)
        return 0 if capacity is None else capacity.state_bytes

    @property
    def slots_in_use(self) -> int:
        """Requests that stages hold, or have not yet confirmed as freed."""
        return len(self._open)

    @property
    def places(self) -> int:
        """Requests that can be served without gaps, by the stages' own measurements. Without
        measurements, or if the pipeline makes no sound, the number of slots."""
        if not self.frame_period_s:
            return self.slots
        capacities = self._supervisor.capacities
        paces = [
            StagePace(self._costs[spec.name], capacities[spec.name].max_batch_frames)
            for spec in self._pipeline.stages
            if spec.name in self._costs
        ]
        return compute_places(paces, self.frame_period_s, self.slots)

    def on_places(self, callback: Callable[[int], None]) -> None:
        """Register the function that is called with `places` whenever that may have changed."""
        self._on_places = callback

    @property
    def frame_period_s(self) -> float:
        """Seconds of sound in one frame; 0 if the pipeline makes no sound."""
        if not self._pipeline.makes_sound:
            return 0.0
        period_s = self.sound_capacity.frame_period_s
        assert period_s is not None, "a stage that makes sound has frames"
        return period_s

    @property
    def makes_sound(self) -> bool:
        return self._pipeline.makes_sound

    @property
    def sound_capacity(self) -> StageCapacity:
        """The capacity of the stage that makes the sound, with the PCM's format. Raises StageDied:
        the stage has never been ready."""
        try:
            return self._supervisor.capacities[self._pipeline.sound.stage]
        except KeyError:
            raise StageDied("the model is not ready") from None

    async def start(self) -> None:
        """Start all stages in parallel; returns when all are ready. Raises StageDied: a stage could
        not start; the others have been ended."""
        await self._supervisor.start()

    async def wait_until_ready(self, timeout_s: float) -> None:
        """Return when every stage accepts requests. Raises StageDied: one is not ready in time."""
        try:
            async with asyncio.timeout(timeout_s):
                await self._supervisor.wait_until_ready()
        except TimeoutError:
            raise StageDied(STAGE_DOWN) from None

    @asynccontextmanager
    async def track_request(self, ready_within_s: float = 0.0) -> AsyncIterator[None]:
        """Count a request, with all its segments, as running: a machine that is about to stop waits
        until it has ended, and stages that were unloaded are loaded first.

        Args:
            ready_within_s: wait so long for stages that are being started again.

        Raises:
            StageDied: the stages cannot be loaded, or are not ready in time.
        """
        async with self._idle_unloader.use():
            if ready_within_s:
                await self.wait_until_ready(ready_within_s)
            with self._host_drain.track_request():
                yield

    def check(self, request: PipelineRequest) -> None:
        """Raises Quarantined if the request has ended a stage process twice."""
        self._crash_tracker.check(request.inputs)

    async def stop(self, deadline_s: float) -> None:
        """Drain every stage until the deadline, then end its process."""
        await self._idle_unloader.stop()
        await self._supervisor.stop(deadline_s)

    @asynccontextmanager
    async def open(self, request: PipelineRequest) -> AsyncIterator[OpenRequest]:
        """Run one request; when the block is left, no stage holds any part of it. If a stage died,
        the others free it as soon as they can.

        Raises:
            Quarantined: it has ended a stage process twice.
            StageDied: a stage of the pipeline is not running.
        """
        part = self._pipeline.taking_part(request.inputs, request.without)
        stages = [spec.name for spec in part]
        sources = [e.source for e in self._pipeline.client_edges if e.stage in stages]
        outputs = [source for source in sources if source not in request.without]
        timeout_s = self._deployment.chunk_timeout_s
        opened = OpenRequest(request, stages, outputs, timeout_s, self._credit)
        async with self._idle_unloader.use(), self._crash_tracker.admit(opened):
            self._open[request.request_id] = opened
            try:
                await self._register(request, stages)
                yield opened
            finally:
                # A second cancellation must not leave the request behind in a stage.
                closing = self._start_task(self._close(opened), f"close:{opened.request_id}")
                # WHY not after a death: the other stages may wait for the dead one's successor.
                if not opened.lost:
                    await asyncio.shield(closing)

    async def extend(
        self, opened: OpenRequest, stage: str, payload: StageInput, *, final: bool
    ) -> None:
        """Pass on input that a request's stage still waits for.

        Raises:
            Quarantined: the text so far has ended a stage process twice.
            StageDied: the stage is not running.
        """
        opened.content.append(payload)
        self._crash_tracker.check(*opened.content)
        await self.stages[stage].send(Extend(opened.request_id, payload, final))

    def output(self, opened: OpenRequest, edge: EdgeSpec) -> OutputStream:
        return opened.outputs[edge.source]

    def sound(self, opened: OpenRequest) -> AsyncIterator[Chunk[Pcm]]:
        """A request's sound; some chunks may be empty."""
        return cast(AsyncIterator[Chunk[Pcm]], self.output(opened, self._pipeline.sound))

    async def _register(self, request: PipelineRequest, stages: Sequence[str]) -> None:
        # The last stage first: a chunk must find its request wherever it arrives.
        for name in reversed(stages):
            await self.stages[name].send(
                Register(
                    request.request_id,
                    request.inputs.get(name),
                    request.batch,
                    request.playout_deadline_s,
                    request.stretch,
                )
            )

    async def _close(self, opened: OpenRequest) -> None:
        try:
            if not opened.complete:
                await self._aborts.free(opened)
        finally:
            del self._open[opened.request_id]

    def _on_message(self, stage: str, message: Report) -> None:
        match message:
            case Output(chunks):
                for chunk in chunks:
                    self._on_chunk(stage, chunk)
            case Failed(request_id, error):
                if (opened := self._open.get(request_id)) is not None:
                    opened.fail(error)
            case Aborted(request_ids):
                for request_id in request_ids:
                    if (opened := self._open.get(request_id)) is not None:
                        self._aborts.acknowledged(opened, stage)
            case Pong(held=held):
                forgotten = tuple(request_id for request_id in held if request_id not in self._open)
                if forgotten:
                    reclaiming = self._aborts.reclaim(self.stages[stage], forgotten)
                    self._start_task(reclaiming, f"reclaim:{stage}")
            case StepMeasured(ForwardCost() as cost):
                self.forward_cost = cost
            case StepMeasured(StepCost() as cost):
                self._costs[stage] = cost
                if self._on_places is not None:
                    self._on_places(self.places)

    def _on_chunk(self, stage: str, chunk: Chunk[Payload]) -> None:
        opened = self._open.get(chunk.request_id)
        if opened is None:
            return
        opened.arrive(stage, chunk, count_frames([chunk], self._supervisor.capacities[stage]))
        self._crash_tracker.record_progress(opened)
        if opened.complete:
            self._supervisor.useful()

    def _start_task(self, work: Coroutine[None, None, None], name: str) -> asyncio.Task[None]:
        task = asyncio.create_task(work, name=name)
        self._background.add(task)
        task.add_done_callback(self._background.discard)
        return task

    def _on_death(self, name: str, death: Death) -> None:
        process = self._deployment.sharing(name)[0]
        culprits = self._crash_tracker.record_death(process, death, self._open)
        if culprits:
            self._supervisor.history[name].forgive()
        for request_id, opened in self._open.items():
            self._aborts.acknowledged(opened, name)
            # What has output and is not held there has left that stage behind.
            if name in opened.stages and (request_id in death.held or not opened.frames):
                error: CantataError = culprits.get(request_id, death.error)
                opened.lost = True
                opened.fail(error)
