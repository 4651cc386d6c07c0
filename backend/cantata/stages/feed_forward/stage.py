"""The feed-forward stage: whole inputs in, whole outputs out, in batches; equal inputs once."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from inspect import signature
from pathlib import Path
from typing import Any

import torch

from cantata.config import FeedForwardDeployment
from cantata.contract.data.chunks import Chunk, Payload, Pcm
from cantata.contract.data.errors import (
    CantataError,
    ConfigError,
    RequestFailed,
)
from cantata.contract.data.request import StageInput
from cantata.contract.model.factory import resolve
from cantata.contract.model.feed_forward import (
    Fed,
    FedFeedForward,
    FeedForward,
    Synthesizer,
    Tiling,
)
from cantata.contract.model.pipeline import StageSpec
from cantata.contract.process.messages import ReuseReport, StageCapacity
from cantata.contract.process.stage import StepResult, Working
from cantata.stages.common.intake import InputCollector, check_slot
from cantata.stages.common.needs import META, WEIGHTS, count_made
from cantata.stages.common.plugin_call import ThreadWorker, Worker, guard_plugin_call, run_batch
from cantata.stages.feed_forward.computations import Computations, Outcome
from cantata.stages.feed_forward.synthesis import SynthesisStage

NICENESS = 5
"""Niceness of the thread that computes."""
_UNREADABLE = "the input could not be read"
_FAILURE = "the input could not be computed"


def build_stage(
    spec: StageSpec, checkpoint: Path, deployment: FeedForwardDeployment
) -> FeedForwardStage | SynthesisStage:
    """Load a plug-in's model (`factory(checkpoint, device)`) and put a stage around it.

    Raises:
        ConfigError: the deployment has `tiling`, and the factory takes no such argument; or the
            stage's port is sound, and the model makes none.
    """
    model = _load_model(spec, checkpoint, deployment, torch.device(deployment.device))
    sounding = [port for port, payload in spec.ports.items() if payload is Pcm]
    if sounding:
        if not isinstance(model, Synthesizer):
            name = type(model).__name__
            raise ConfigError(
                f"stage {spec.name!r}: port {sounding[0]!r} is sound, so {name} needs "
                "sample_rate, channels and synthesize(); see contract.model.feed_forward"
            )
        return SynthesisStage(model, sounding[0], deployment, len(os.sched_getaffinity(0)))
    return FeedForwardStage(model, spec.ports, deployment)


def prepare_needs(
    spec: StageSpec, checkpoint: Path, deployment: FeedForwardDeployment
) -> Callable[[], Mapping[str, int]]:
    """What measures the weights; outputs are kept in the machine's own memory."""
    load = partial(_load_model, spec, checkpoint, deployment, META)
    return lambda: {WEIGHTS: count_made(load)[1]}


def _load_model(
    spec: StageSpec, checkpoint: Path, deployment: FeedForwardDeployment, device: torch.device
) -> Any:
    load: Callable[..., Any] = resolve(spec.factory)
    options: dict[str, Tiling] = {}
    if deployment.tiling is not None:
        if "tiling" not in signature(load).parameters:
            raise ConfigError(f"{spec.name}: tiling: this stage has no pictures to cut; remove it")
        options["tiling"] = Tiling(**deployment.tiling.model_dump())
    return load(checkpoint, device, **options)


@dataclass(frozen=True, slots=True)
class _Awaiting:
    """A request whose edges have not delivered everything."""

    inputs: StageInput
    batch: bool
    arrivals: InputCollector


class FeedForwardStage:
    """Implements `contract.process.stage.Stage` over a `FeedForward`.

    While it is idle, a request is computed at once. What arrives during a computation is the next
    batch. If computations have a thread, known outputs and aborts do not wait for them.

    Args:
        model: computes.
        ports: what it makes of each input.
        deployment: its limits.
    """

    def __init__(
        self,
        model: FeedForward,
        ports: Mapping[str, type[Payload]],
        deployment: FeedForwardDeployment,
    ) -> None:
        self._model = model
        self._ports = ports
        self._deployment = deployment
        self._computations = Computations(deployment.kept_mib << 20)
        self._awaiting: dict[str, _Awaiting] = {}
        self._worker: Worker[Sequence[Outcome]] = Worker()
        self._done: list[tuple[str, Outcome]] = []
        """Not sent yet."""

    @property
    def capacity(self) -> StageCapacity:
        """Slots; it makes no frames."""
        return StageCapacity(slots=self._deployment.slots, frame_period_s=None)

    @property
    def reuse(self) -> ReuseReport:
        """What it could reuse so far."""
        return self._computations.report

    def add(
        self,
        request_id: str,
        payload: StageInput | None,
        *,
        batch: bool,
        playout_deadline_s: float | None = None,
        stretch: float = 1.0,
    ) -> None:
        """Queue the request's input, unless its output is known. The loop adds requests by their
        deadlines, so `playout_deadline_s` and `stretch` have no effect here.

        Raises:
            ProtocolViolation: the id is in use, or there is no input.
            Overloaded: every slot is taken.
            RequestFailed: the model cannot read the input.
        """
        held = self._held
        payload = check_slot(request_id, payload, held, self._deployment.slots)
        if not isinstance(self._model, FedFeedForward):
            self._request_output(request_id, payload, batch=batch)
            return
        with guard_plugin_call(_UNREADABLE):
            ports = self._model.awaits(payload)
        self._awaiting[request_id] = _Awaiting(payload, batch, InputCollector(ports))
        self._begin_if_complete(request_id)

    def extend(self, request_id: str, payload: StageInput, *, final: bool) -> None:
        """Requests are added to this stage complete."""

    def receive(self, chunks: Sequence[Chunk[Payload]]) -> None:
        """Queue those inputs that are complete now; a wrong chunk fails its own request only."""
        for chunk in chunks:
            request_id = chunk.request_id
            awaiting = self._awaiting.get(request_id)
            if awaiting is None:
                continue  # aborted while the chunk was on its way
            try:
                awaiting.arrivals.take(chunk)
                self._begin_if_complete(request_id)
            except CantataError as error:
                self._awaiting.pop(request_id, None)
                self._done.append((request_id, error))

    def credit(self, request_id: str, samples: int) -> None:
        """This stage makes no sound."""

    def abort(self, request_id: str) -> None:
        """Forget the request; others that wait for the same output still get it."""
        self._computations.abort(request_id)
        self._awaiting.pop(request_id, None)
        self._done = [done for done in self._done if done[0] != request_id]

    def has_work(self) -> bool:
        """Whether a computation can begin, or an output can be sent."""
        can_begin = self._worker.idle and self._computations.waiting
        return bool(self._done) or can_begin or self._worker.finished

    def get_due_in_s(self) -> None:
        """None: only what arrives can make work."""

    def step(self) -> StepResult:
        """Send what is known. Begin the next batch, unless known outputs can be sent before."""
        if not self._done and self._worker.idle:
            batch = self._computations.begin(self._deployment.max_batch)
            self._worker.start(partial(self._run, batch))
        if self._worker.finished:
            self._done += self._computations.finish(self._worker.take())
        done, self._done = self._done, []
        chunks: list[Chunk[Payload]] = []
        failures: list[tuple[str, CantataError]] = []
        for request_id, outcome in done:
            if isinstance(outcome, CantataError):
                failures.append((request_id, outcome))
            else:
                chunks += [Chunk(request_id, p, 0, outcome[p], final=True) for p in self._ports]
        return StepResult(chunks, failures)

    def get_counts(self) -> Mapping[str, int]:
        """Requests that have no output yet."""
        return {"requests": len(self._held)}

    def start_thread(self, working: Working) -> int:
        """Compute in a thread."""
        worker = ThreadWorker[Sequence[Outcome]](working, NICENESS)
        self._worker = worker
        return worker.descriptor

    def close(self) -> None:
        """End the thread, if there is one."""
        self._worker.close()

    @property
    def _held(self) -> set[str]:
        done = {request_id for request_id, _ in self._done}
        return self._computations.requests | done | set(self._awaiting)

    def _begin_if_complete(self, request_id: str) -> None:
        awaiting = self._awaiting[request_id]
        if awaiting.arrivals.complete:
            del self._awaiting[request_id]
            fed = Fed(awaiting.inputs, awaiting.arrivals.payloads)
            self._request_output(request_id, fed, batch=awaiting.batch)

    def _request_output(self, request_id: str, inputs: Any, *, batch: bool) -> None:
        with guard_plugin_call(_UNREADABLE):
            key = self._model.key(inputs)
        output = self._computations.request(request_id, inputs, key, batch=batch)
        if output is not None:
            self._done.append((request_id, output))

    @torch.inference_mode()
    def _run(self, batch: Sequence[Any]) -> Sequence[Outcome]:
        return [self._check_outcome(one) for one in run_batch(self._model.run, batch, _FAILURE)]

    def _check_outcome(self, outcome: Outcome) -> Outcome:
        """The outcome, or what is wrong with it."""
        if isinstance(outcome, CantataError):
            return outcome
        result = {port: type(payload) for port, payload in outcome.items()}
        if result != dict(self._ports):
            names = [
                {p: kind.__name__ for p, kind in ports.items()} for ports in (result, self._ports)
            ]
            return RequestFailed(f"the model made {names[0]}; its ports are {names[1]}")
        return outcome
