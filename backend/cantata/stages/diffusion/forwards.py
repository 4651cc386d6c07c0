"""The calls into a denoiser: to begin jobs, and to advance them together.

A fault of one job must not reach the others.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import partial, reduce
from operator import add
from typing import cast

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.data.chunks import Chunk, Payload
from cantata.contract.data.errors import CantataError, RequestFailed
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.denoiser import Denoiser, Writer
from cantata.stages.common.plugin_call import guard_plugin_call
from cantata.stages.diffusion.jobs import DiffusionJob

_FAILURE = {True: "the picture could not be drawn", False: "the text could not be written"}
"""Messages, by whether the job draws."""


@dataclass(slots=True)
class Begun:
    """Jobs that have a state now, or an error."""

    jobs: Sequence[DiffusionJob]
    errors: dict[str, CantataError] = field(default_factory=dict)


@dataclass(frozen=True, slots=True)
class Leaves:
    """What jobs of a stage leave."""

    latents: bool = True
    text: bool = False
    """Its model is a `Writer`."""


LATENTS_ALONE = Leaves()


@dataclass(slots=True)
class Advanced:
    """Jobs that are a step further, or have an error."""

    jobs: Sequence[DiffusionJob]
    size: ForwardSize
    leaves: Leaves
    seconds: float = 0.0
    alone: bool = False
    """The jobs had to be computed one by one, so the time says nothing."""
    errors: dict[str, CantataError] = field(default_factory=dict)
    """Errors by request, as the next two."""
    previews: dict[str, NDArray[np.uint8]] = field(default_factory=dict)
    latents: dict[str, NDArray[np.float32]] = field(default_factory=dict)
    written: dict[str, NDArray[np.int32]] = field(default_factory=dict)
    """What jobs that write wrote in this step."""

    def output(self, job: DiffusionJob, now_s: float) -> list[Chunk[Payload]]:
        """What a job leaves after its step: some text, or the end of it; its latents."""
        chunks: list[Chunk[Payload]] = []
        written = self.written.get(job.request_id)
        latents = self.latents.get(job.request_id)
        if written is not None and (len(written) or job.done == job.steps):
            chunks.append(job.text(written, now_s))
        if latents is not None:
            chunks.append(job.result(latents))
        return chunks


@torch.inference_mode()
def begin(model: Denoiser, jobs: Sequence[DiffusionJob]) -> Begun:
    """Make the states of jobs whose inputs have all arrived."""
    outcome = Begun(jobs)
    for job in jobs:
        _run_guarded(outcome.errors, job, partial(job.begin, model))
    return outcome


@torch.inference_mode()
def advance(model: Denoiser, jobs: Sequence[DiffusionJob], leaves: Leaves) -> Advanced:
    """One step of each of these, and what is to be seen of it."""
    outcome = Advanced(jobs, reduce(add, (model.size(job.state) for job in jobs)), leaves)
    began_s = time.monotonic()
    errors: Sequence[CantataError | None]
    try:
        with guard_plugin_call(_FAILURE[jobs[0].draws]):
            errors = model.advance([job.state for job in jobs])
    except CantataError as fault:
        outcome.alone = True
        errors = [fault] if len(jobs) == 1 else [_run_alone(model, job) for job in jobs]
    outcome.seconds = time.monotonic() - began_s
    for job, error in zip(jobs, errors, strict=True):
        if error is not None:
            outcome.errors[job.request_id] = error
            continue
        job.done += 1
        _run_guarded(outcome.errors, job, partial(_look, model, job, outcome))
    return outcome


def _run_alone(model: Denoiser, job: DiffusionJob) -> CantataError | None:
    try:
        with guard_plugin_call(_FAILURE[job.draws]):
            return model.advance([job.state])[0]
    except CantataError as error:
        return error


def _look(model: Denoiser, job: DiffusionJob, outcome: Advanced) -> None:
    """Take what others are to see of a job after its step. Raises RequestFailed: the picture is not
    made of finite numbers."""
    job.update(model)
    if job.done in job.shown:
        outcome.previews[job.request_id] = model.preview(job.state)
    if outcome.leaves.text:
        outcome.written[job.request_id] = cast(Writer, model).written(job.state)
    if job.draws and job.done == job.steps:
        latents = model.latents(job.state)
        if not np.isfinite(latents).all():
            raise RequestFailed("the denoised latents are not finite numbers")
        outcome.latents[job.request_id] = latents


def _run_guarded(
    errors: dict[str, CantataError], job: DiffusionJob, call: Callable[[], None]
) -> None:
    try:
        with guard_plugin_call(_FAILURE[job.draws]):
            call()
    except CantataError as error:
        errors[job.request_id] = error
