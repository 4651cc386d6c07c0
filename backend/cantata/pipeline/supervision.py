"""A pipeline's stage processes: started together, restarted when they die, ended together.

Requests that run may end before the pipeline leaves machines that are about to stop.
"""

from __future__ import annotations

import asyncio
import logging
import signal
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from cantata.config import Deployment, StageDeployment
from cantata.contract.data.errors import StageDied
from cantata.contract.model.pipeline import PipelineSpec
from cantata.contract.process.messages import StageCapacity
from cantata.pipeline.gpu_memory import OTHER_CANNOT_START, GpuMemory, LoadGate
from cantata.pipeline.launches import PlannedEdges, plan_edges, plan_launch
from cantata.pipeline.remote_stages import RemoteStages
from cantata.pipeline.shared_process import SharedProcess
from cantata.pipeline.spawning import preload
from cantata.pipeline.stage_handle import StageHandle
from cantata.pipeline.stage_process import Death, Report, StageProcess, StageState
from cantata.utils.logs import LogFormat


class HostDrain:
    """Disconnects one pipeline from draining machines once no request runs. `disconnect_draining`:
    ends what connects the pipeline with machines that are about to stop."""

    def __init__(self, disconnect_draining: Callable[[], None]) -> None:
        self._disconnect_draining = disconnect_draining
        self._active_requests = 0
        self._announced = False

    @contextmanager
    def track_request(self) -> Iterator[None]:
        """Count a request for the time of the block: all its segments, with the pauses between."""
        self._active_requests += 1
        try:
            yield
        finally:
            self._active_requests -= 1
            self._disconnect_if_idle()

    def announce(self) -> None:
        """A machine is about to stop. No request begins meanwhile, because its stages are not
        ready any more."""
        self._announced = True
        self._disconnect_if_idle()

    def _disconnect_if_idle(self) -> None:
        if self._announced and not self._active_requests:
            self._announced = False
            self._disconnect_draining()


BACKOFF_S = (0.5, 2.0, 8.0, 30.0)
"""Waits before the first, second... restart of a stage that keeps failing; the last repeats."""
HEALTHY_S = 10.0
"""A process that was ready for this long was useful. So was one that completed a request."""
KILLS, KILLS_WITHIN_S = 3, 60.0
"""This many deaths by SIGKILL within this time are reported in `/health`."""


class RestartHistory:
    """One stage's starts and deaths. `clock`: monotonic seconds."""

    def __init__(self, clock: Callable[[], float]) -> None:
        self._clock = clock
        self._in_vain = 0
        """Consecutive processes that were not useful."""
        self._ready_at_s: float | None = None
        self._useful = False
        self._kills: deque[float] = deque(maxlen=KILLS)
        self.restarts = 0
        """Since the server's start, including failed attempts."""
        self.last_death: str | None = None

    def ready(self) -> None:
        """A process accepts requests."""
        self._ready_at_s = self._clock()
        self._useful = False

    def useful(self) -> None:
        """The process has completed a request."""
        self._useful = True

    def forgive(self) -> None:
        """The cause of the death is quarantined and cannot recur."""
        self._useful = True

    def record_death(self, why: str, exit_code: int | None) -> float:
        """The process has ended, ready or not; returns the seconds to wait before a restart."""
        now_s = self._clock()
        ready_at_s, self._ready_at_s = self._ready_at_s, None
        lived_s = 0.0 if ready_at_s is None else now_s - ready_at_s
        if self._useful or lived_s >= HEALTHY_S:
            self._in_vain = 0
        self._useful = False
        if exit_code == -signal.SIGKILL:
            self._kills.append(now_s)
        self.last_death = why
        wait_s = BACKOFF_S[min(self._in_vain, len(BACKOFF_S) - 1)]
        self._in_vain += 1
        self.restarts += 1
        return wait_s

    @property
    def trouble(self) -> str | None:
        """A warning for the operator, if any."""
        if len(self._kills) < KILLS or self._clock() - self._kills[0] > KILLS_WITHIN_S:
            return None
        return (
            f"killed {KILLS} times within {KILLS_WITHIN_S:g} s, as the kernel does where memory "
            "runs out: give the stage more memory, or fewer slots"
        )


logger = logging.getLogger(__name__)

RESTART_DEADLINE_S = 30.0
"""Limit for a restart, unless a multiple of the first start's duration is longer."""
RESTART_SHARE = 5.0
UNLOAD_DEADLINE_S = 5.0
"""For processes that have nothing to do."""


class Supervisor:
    """Keeps one process for each stage of a pipeline.

    Args:
        on_message: called with a stage's messages and its name.
        on_death: called once for each process that was ready and exits unasked.
        on_leaving: called when a machine is about to stop that runs stages.
        remote_stages: has the stages whose deployment names a host; None: there are none.
        gpu_memory: of this machine; None: no other pipeline loads at the same time.
    """

    def __init__(
        self,
        pipeline: PipelineSpec,
        checkpoint: Path,
        deployment: Deployment,
        log_level: int,
        log_format: LogFormat,
        on_message: Callable[[str, Report], None],
        on_death: Callable[[str, Death], None],
        on_leaving: Callable[[], None] = lambda: None,
        remote_stages: RemoteStages | None = None,
        gpu_memory: GpuMemory | None = None,
    ) -> None:
        self.stages: dict[str, StageProcess] = {}
        self.capacities: dict[str, StageCapacity] = {}
        """What each stage reported when it was first ready."""
        self.history = {spec.name: RestartHistory(time.monotonic) for spec in pipeline.stages}
        self._came_up = asyncio.Event()
        """A stage did; who waits for all of them looks again."""
        self._pipeline = pipeline
        self._checkpoint = checkpoint
        self._deployment = deployment
        self._log_level = log_level
        self._log_format = log_format
        self._on_message = on_message
        self._on_death = on_death
        self._on_leaving = on_leaving
        self._remote_stages = remote_stages
        self._gpu_memory = gpu_memory or GpuMemory()
        self._processes: dict[tuple[str, ...], SharedProcess] = {}
        """The latest ones, by the stages that share them."""
        self._edges = PlannedEdges({}, {}, ())
        self._restarting: set[asyncio.Task[None]] = set()

    @property
    def ready(self) -> bool:
        states = [stage.state for stage in self.stages.values()]
        return len(states) == len(self._pipeline.stages) and set(states) == {StageState.READY}

    async def wait_until_ready(self) -> None:
        while not self.ready:
            self._came_up.clear()
            await self._came_up.wait()

    async def start(self) -> None:
        """Start all stages in parallel; returns when all are ready. Raises StageDied: a stage could
        not start; the others have been ended."""
        hosts = self._deployment.hosts
        self._edges = plan_edges(self._pipeline, hosts)
        if hosts:
            assert self._remote_stages is not None, (
                "a stage on another machine needs `remote_stages`"
            )
            self._remote_stages.begin(self._edges.crossing, self._on_leaving)
        deployments = self._deployment.stages
        preload((spec, deployments[spec.name]) for spec in self._pipeline.stages)
        try:
            await self.load()
        except BaseException:
            await self.stop(deadline_s=0)
            raise

    async def load(self) -> None:
        """Start the processes of all stages, as `start` does and after `unload`.

        Raises:
            StageDied: one could not start; none is left.
            ConfigError: a GPU has too little memory for its stages, likewise.
        """
        deadline_s = self._deployment.start_timeout_s
        names = [spec.name for spec in self._pipeline.stages]
        gate = self._make_gate(names)
        starting = [self._start_stage(name, deadline_s, gate) for name in names]
        results = await asyncio.gather(*starting, return_exceptions=True)
        gate.close()
        errors = [result for result in results if isinstance(result, BaseException)]
        if errors:
            await self._stop_stages(deadline_s=0)
            raise min(errors, key=_is_consequence)

    async def unload(self) -> None:
        """End the processes of all stages, which hold no request; `load` starts them again."""
        await self._stop_stages(UNLOAD_DEADLINE_S)

    def disconnect_draining(self) -> None:
        """No request is at work: machines that are about to stop may do so."""
        if self._remote_stages is not None:
            self._remote_stages.disconnect_draining()

    def useful(self) -> None:
        """A request completed: every stage is useful."""
        for history in self.history.values():
            history.useful()

    async def stop(self, deadline_s: float) -> None:
        """Drain every stage until the deadline, then end its process."""
        await self._stop_stages(deadline_s)
        if self._remote_stages is not None:
            await self._remote_stages.stop()
        for listener in self._edges.listeners.values():
            listener.close()

    async def _stop_stages(self, deadline_s: float) -> None:
        restarting = set(self._restarting)
        for task in restarting:
            task.cancel()
        await asyncio.gather(*restarting, return_exceptions=True)
        await asyncio.gather(*(stage.stop(deadline_s) for stage in self.stages.values()))

    def _make_gate(self, names: Iterable[str]) -> LoadGate:
        """For stages that start together: those that run on GPUs of this machine pass it."""
        here = {name: self._deployment.stages[name] for name in names}
        asked = {name: stage for name, stage in here.items() if asks_for_memory(stage)}
        processes = {name: self._deployment.sharing(name) for name in asked}
        return LoadGate(self._gpu_memory, asked, processes)

    async def _start_stage(self, name: str, deadline_s: float, gate: LoadGate) -> None:
        stage = self.stages[name] = self._create_stage(name, gate)
        try:
            self.capacities[name] = await stage.start(deadline_s)
        except BaseException:
            gate.close()  # others wait for its needs
            raise
        self.history[name].ready()
        self._came_up.set()

    def _create_stage(self, name: str, gate: LoadGate) -> StageProcess:
        """Not started yet."""
        if self._remote_stages is not None and name in self._deployment.hosts:
            return self._remote_stages.stage(name, self._on_message, self._on_died)
        launch = plan_launch(
            name,
            self._pipeline,
            self._edges,
            self._checkpoint,
            self._deployment,
            self._log_level,
            self._log_format,
            reports_needs=asks_for_memory(self._deployment.stages[name]),
        )
        silence_s = self._deployment.chunk_timeout_s
        process = self._claim_process(name)
        return StageHandle(launch, silence_s, self._on_message, self._on_died, process, gate)

    def _claim_process(self, name: str) -> SharedProcess:
        """The process that the stage runs in next. It starts once all that share it are there."""
        sharing = self._deployment.sharing(name)
        process = self._processes.get(sharing)
        if process is None or not process.claim(name):
            process = self._processes[sharing] = SharedProcess(sharing)
            process.claim(name)
        return process

    def _on_died(self, name: str, death: Death) -> None:
        self._on_death(name, death)
        stage = self.stages[name]
        limit_s = max(RESTART_DEADLINE_S, RESTART_SHARE * stage.startup_s)
        deadline_s = min(self._deployment.start_timeout_s, limit_s)
        exit_code = None if death.hang is not None else death.exit_code
        wait_s = self.history[name].record_death(death.error.message, exit_code)
        task = asyncio.create_task(self._restart(name, wait_s, deadline_s), name=f"restart:{name}")
        self._restarting.add(task)
        task.add_done_callback(self._restarting.discard)

    async def _restart(self, name: str, wait_s: float, deadline_s: float) -> None:
        """Try until the stage is ready again."""
        while True:
            await self.stages[name].stop(deadline_s=0)
            await asyncio.sleep(wait_s)
            await self.stages[name].wait_until_possible()
            logger.warning("restarting stage %s", name)
            gate = self._make_gate([name])
            try:
                await self._start_stage(name, deadline_s, gate)
            except Exception as error:
                # The edge of a process: whatever prevents its start now - no descriptor, no
                # memory, no thread, a disk that does not answer - may be gone at the next attempt.
                logger.error("stage %s could not be started: %s", name, error or repr(error))
                exit_code = self.stages[name].exit_code
                wait_s = self.history[name].record_death(str(error) or repr(error), exit_code)
            else:
                return
            finally:
                gate.close()


def asks_for_memory(stage: StageDeployment) -> bool:
    """Whether a stage says what it will hold before it loads: on a GPU of this machine."""
    return stage.on_gpu and stage.host is None


def _is_consequence(error: BaseException) -> bool:
    """Whether a stage only could not start because another one cannot."""
    return isinstance(error, StageDied) and error.message == OTHER_CANNOT_START
