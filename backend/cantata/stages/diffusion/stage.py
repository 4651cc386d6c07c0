"""The diffusion stage: pictures and texts in slots, each forward's jobs chosen by `plan`."""

from __future__ import annotations

import math
import time
from collections.abc import Callable, Mapping, Sequence
from functools import partial
from pathlib import Path
from typing import cast

import numpy as np
from numpy.typing import NDArray

from cantata.config import DiffusionDeployment
from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import (
    CantataError,
)
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.data.request import StageInput
from cantata.contract.model.denoiser import Denoiser, Writer
from cantata.contract.model.pipeline import CODES, LATENTS, PROGRESS, StageSpec
from cantata.contract.process.messages import ForwardCost, StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.scheduling.forward_time_model import ForwardTimeModel
from cantata.scheduling.step_plan import OutputLengthEstimator, plan
from cantata.stages.common.intake import InputCollector, check_slot
from cantata.stages.common.plugin_call import ThreadWorker, Worker, guard_plugin_call
from cantata.stages.diffusion.forwards import (
    LATENTS_ALONE,
    Advanced,
    Begun,
    Leaves,
    advance,
    begin,
)
from cantata.stages.diffusion.jobs import DiffusionJob
from cantata.stages.diffusion.loading import load_model

NICENESS = 15
"""Of the thread that draws: it takes what speech leaves of the CPU."""
REPORTED_CHANGE = 0.05
"""A relative change of a forward's cost that is worth a report."""
UNKNOWN_COST = ForwardCost(0.0, 1e-6, 0.0)
"""Before a forward was measured: pictures are drawn one after the other, short ones first."""
REPORT_S = 1.0
"""A job that waits for its turn is reported again after this time, so that nobody takes it for
lost."""


def build_stage(
    spec: StageSpec, checkpoint: Path, deployment: DiffusionDeployment
) -> DiffusionStage:
    """Load a plug-in's model (`factory(checkpoint, options)`) and put a stage around it."""
    model = load_model(spec.factory, checkpoint, deployment)
    ports = spec.ports
    leaves = Leaves(latents=LATENTS in ports, text=CODES in ports)
    return DiffusionStage(model, deployment, leaves=leaves, shows_progress=PROGRESS in ports)


class DiffusionStage:
    """Implements `contract.process.stage.Stage` over a `Denoiser`.

    Args:
        clock: monotonic seconds; the plan's deadlines are on it.
        shows_progress: whether it has the port for that.
    """

    reuse = None
    """It keeps no results."""

    def __init__(
        self,
        model: Denoiser,
        deployment: DiffusionDeployment,
        clock: Callable[[], float] = time.monotonic,
        *,
        leaves: Leaves = LATENTS_ALONE,
        shows_progress: bool = True,
    ) -> None:
        self._model = model
        self._deployment = deployment
        self._clock = clock
        self._shows_progress = shows_progress
        self._leaves = leaves
        self._jobs: dict[str, DiffusionJob] = {}
        self._failures: list[tuple[str, CantataError]] = []
        self._pace = ForwardTimeModel()
        self._usual = OutputLengthEstimator()
        self._reported: ForwardCost | None = None
        self._worker: Worker[Begun | Advanced] = Worker()

    @property
    def capacity(self) -> StageCapacity:
        """Slots; it makes no frames."""
        return StageCapacity(slots=self._deployment.slots, frame_period_s=None)

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Take a slot. `stretch` has no meaning here.

        Raises:
            ProtocolViolation: the id is in use, or there is no input.
            Overloaded: every slot is taken.
            RequestFailed: the model cannot read the input.
        """
        payload = check_slot(request_id, payload, self._jobs, self._deployment.slots)
        with guard_plugin_call("the input could not be read"):
            ports, draws = self._model.awaits(payload), self._draws(payload)
        deadline_s = math.inf if playout_deadline_s is None else playout_deadline_s
        self._jobs[request_id] = DiffusionJob(
            request_id, payload, batch, deadline_s, self._clock(), InputCollector(ports), draws
        )

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Requests are added to this stage complete."""

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Take what jobs await; a wrong chunk fails its own request only."""
        for chunk in chunks:
            job = self._jobs.get(chunk.request_id)
            if job is None:
                continue  # aborted while the chunk was on its way
            try:
                job.arrivals.take(chunk)
            except CantataError as error:
                self._fail(job, error)

    def credit(self, request_id: str, samples: int) -> None:
        """This stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Free the slot. A forward that has begun ends with the job in it, and the job is
        dropped."""
        self._jobs.pop(request_id, None)

    def has_work(self) -> bool:
        """Whether a job can begin or advance, or something can be reported."""
        if self._failures or self._worker.finished:
            return True
        return self._worker.idle and any(job.arrivals.complete for job in self._jobs.values())

    def get_due_in_s(self) -> None:
        """None: only what arrives can make work."""

    def step(self) -> StepResult:
        """Begin what has arrived; otherwise have the next forward computed."""
        if self._worker.idle:
            self._start()
        chunks: list[Chunk[Payload]] = []
        if self._worker.finished:
            chunks = self._report(self._worker.take())
        failures, self._failures = self._failures, []
        return StepResult(chunks, failures, self._report_cost())

    def get_counts(self) -> Mapping[str, int]:
        """Pictures and texts that are being made, or wait for that."""
        return {"requests": len(self._jobs)}

    def start_thread(self, working: Working) -> int:
        """Begin and advance jobs in a thread."""
        worker = ThreadWorker[Begun | Advanced](working, NICENESS)
        self._worker = worker
        return worker.descriptor

    def close(self) -> None:
        """End the thread, if there is one."""
        self._worker.close()

    def _draws(self, payload: StageInput) -> bool:
        """Whether a request's job leaves latents."""
        if not (self._leaves.latents and self._leaves.text):
            return self._leaves.latents
        return cast(Writer, self._model).draws(payload)

    def _start(self) -> None:
        """Have the worker begin what has arrived, or else compute the next forward."""
        ready = [job for job in self._jobs.values() if job.arrivals.complete]
        new = [job for job in ready if job.state is None]
        if new:
            self._worker.start(partial(begin, self._model, new))
        elif ready:
            jobs = self._choose_next(ready)
            self._worker.start(partial(advance, self._model, jobs, self._leaves))

    def _choose_next(self, jobs: Sequence[DiffusionJob]) -> list[DiffusionJob]:
        views = [job.view(self._model, self._usual) for job in jobs]
        cost = self._pace.cost or UNKNOWN_COST
        chosen = plan(views, cost, self._deployment.max_tokens, self._clock())
        return [self._jobs[view.request_id] for view in chosen]

    def _report(self, outcome: Begun | Advanced) -> list[Chunk[Payload]]:
        """What the worker did, less what was meanwhile aborted."""
        for job in outcome.jobs:
            error = outcome.errors.get(job.request_id)
            if error is not None and self._holds(job):
                self._fail(job, error)
        held = [job for job in outcome.jobs if self._holds(job)]
        now_s = self._clock()
        if isinstance(outcome, Begun):
            chunks = self._start_jobs(held, now_s)
        else:
            chunks = self._advance_jobs(outcome, held, now_s)
        return chunks + self._build_signs_of_life(now_s)

    def _start_jobs(self, jobs: Sequence[DiffusionJob], now_s: float) -> list[Chunk[Payload]]:
        for job in jobs:
            job.reported_s = now_s
        return self._build_progress(jobs, {}, now_s)

    def _advance_jobs(
        self, outcome: Advanced, held: Sequence[DiffusionJob], now_s: float
    ) -> list[Chunk[Payload]]:
        if not outcome.alone:
            self._pace.measure(outcome.size, outcome.seconds)
        chunks = self._build_progress(held, outcome.previews, now_s)
        for job in held:
            chunks += outcome.output(job, now_s)
            if job.done == job.steps:
                self._end(job)
        return chunks

    def _build_progress(
        self, jobs: Sequence[DiffusionJob], previews: Mapping[str, NDArray[np.uint8]], now_s: float
    ) -> list[Chunk[Payload]]:
        """The progress of those jobs that draw."""
        if not self._shows_progress:
            return []
        return [job.report(previews.get(job.request_id), now_s) for job in jobs if job.draws]

    def _build_signs_of_life(self, now_s: float) -> list[Chunk[Payload]]:
        """Signs of life for jobs that have sent nothing for long."""
        reporting = (job for job in self._jobs.values() if self._shows_progress or not job.draws)
        return [job.sign_of_life(now_s) for job in reporting if _is_overdue(job, now_s)]

    def _end(self, job: DiffusionJob) -> None:
        del self._jobs[job.request_id]
        if not job.draws:
            self._usual.record_length(job.steps)

    def _holds(self, job: DiffusionJob) -> bool:
        return self._jobs.get(job.request_id) is job

    def _fail(self, job: DiffusionJob, error: CantataError) -> None:
        del self._jobs[job.request_id]
        self._failures.append((job.request_id, error))

    def _report_cost(self) -> ForwardCost | None:
        """The forwards' cost, if it has changed."""
        cost = self._pace.cost
        if cost is None or not self._is_news(cost):
            return None
        self._reported = cost
        return cost

    def _is_news(self, cost: ForwardCost) -> bool:
        if self._reported is None:
            return True
        small, typical = ForwardSize(1, 1), self._pace.typical
        before, now = self._reported, cost
        changes = [abs(now.seconds(size) - before.seconds(size)) for size in (small, typical)]
        return max(changes) > REPORTED_CHANGE * before.seconds(typical)


def _is_overdue(job: DiffusionJob, now_s: float) -> bool:
    return job.state is not None and now_s - job.reported_s > REPORT_S
