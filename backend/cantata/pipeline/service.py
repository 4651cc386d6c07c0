"""The models of this server, as the service that the api talks to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Collection, Sequence
from dataclasses import dataclass
from typing import TypeVar

from cantata.config import Deployment, DiffusionDeployment
from cantata.contract.catalogue import Catalogue
from cantata.contract.data.errors import CantataError, ConfigError, StageDied
from cantata.contract.process.messages import Pong
from cantata.contract.service import ReplicaReport, StageReport
from cantata.pipeline.admission import AdmissionPolicy
from cantata.pipeline.chat_model import PipelineChatModel
from cantata.pipeline.gpu_memory import GpuMemory
from cantata.pipeline.image_model import PipelineImageModel
from cantata.pipeline.model import PipelineModel
from cantata.pipeline.mps import MpsControl, find_shared_gpus
from cantata.pipeline.orchestrator import STAGE_DOWN, Orchestrator
from cantata.pipeline.plan import ServicePlan
from cantata.pipeline.remote_stages import RemoteStages, RemoteStagesFactory
from cantata.pipeline.slot_policy import SlotPolicy
from cantata.pipeline.speech_model import PipelineSpeechModel
from cantata.pipeline.stage_process import StageProcess
from cantata.pipeline.step_policy import StepPolicy
from cantata.pipeline.transcription_model import PipelineTranscriptionModel
from cantata.pipeline.window_policy import WindowPolicy
from cantata.scheduling.step_admission import StepLimits
from cantata.utils.logs import LogFormat

logger = logging.getLogger(__name__)

DRAIN_DEADLINE_S = 5.0
REPORT_DEADLINE_S = 0.5
"""A stage in a long step answers later; `/health` and `/metrics` do not wait longer."""

M = TypeVar("M", bound=PipelineModel)


@dataclass(frozen=True, slots=True)
class ServedPipeline:
    """One pipeline and the models that it serves: usually one. A plug-in that answers and draws has
    a chat model and an image model of the same name."""

    policy: AdmissionPolicy
    models: tuple[PipelineModel, ...]

    @property
    def name(self) -> str:
        return self.policy.name

    @property
    def orchestrator(self) -> Orchestrator:
        return self.policy.orchestrator

    async def start(self) -> None:
        """Start the stages, warm them up and measure what they can serve."""
        await self.policy.start(self._warm_up)

    async def _warm_up(self) -> None:
        for model in self.models:
            await model.warm_up()


class PipelineService(
    Catalogue[
        PipelineSpeechModel, PipelineChatModel, PipelineImageModel, PipelineTranscriptionModel
    ]
):
    """Implements `contract.transcription_service.TranscriptionService` over pipelines in stage
    processes.

    Args:
        pipelines: the default model of each kind first.
        later: names of those that start once the others are ready; readiness does not wait for
            them.
        mps: runs while they do; None: no GPU is shared.
    """

    def __init__(
        self,
        pipelines: Sequence[ServedPipeline],
        later: Collection[str] = (),
        mps: MpsControl | None = None,
    ) -> None:
        speaking = _index_by_name(pipelines, PipelineSpeechModel)
        super().__init__(
            speaking,
            _index_by_name(pipelines, PipelineChatModel),
            _index_by_name(pipelines, PipelineImageModel),
            _index_by_name(pipelines, PipelineTranscriptionModel),
            next(iter(speaking), ""),
        )
        self._served = tuple(pipelines)
        self._later = [one for one in self._served if one.name in later]
        self._failed: list[ServedPipeline] = []
        """Those of `later` that could not start; they are not tried again."""
        self._starting_later: asyncio.Task[None] | None = None
        self._mps = mps or MpsControl({})

    @property
    def trouble(self) -> str:
        """Why it is not ready, for a person."""
        return STAGE_DOWN

    @property
    def ready(self) -> bool:
        """Whether every model is ready, but for those that start later."""
        unwaited = (*self._later, *self._failed)
        return all(model.orchestrator.ready for model in self._served if model not in unwaited)

    async def start(self) -> None:
        """Start every model. Raises StageDied: one could not start; nothing is left running."""
        await self._mps.start()
        try:
            async with asyncio.TaskGroup() as group:
                for model in self._served:
                    if model not in self._later:
                        group.create_task(model.start(), name=f"start:{model.name}")
        except ExceptionGroup as errors:
            await self.stop()
            raise errors.exceptions[0] from errors
        if self._later:
            self._starting_later = asyncio.create_task(self._start_later(), name="start-later")

    async def stop(self) -> None:
        if self._starting_later is not None:
            self._starting_later.cancel()
            await asyncio.wait([self._starting_later])
        await asyncio.gather(*(one.policy.stop(DRAIN_DEADLINE_S) for one in self._served))
        await self._mps.stop()

    async def collect_stage_reports(self) -> list[StageReport]:
        """The state of every stage process, and what it holds. Models that start later are included
        once they have started."""
        stages = [
            (model, stage)
            for model in self._served
            if model not in self._later
            for stage in model.orchestrator.stages.values()
        ]
        return list(await asyncio.gather(*(_report(model, stage) for model, stage in stages)))

    def get_replica_reports(self) -> list[ReplicaReport]:
        """None: the stages run on this machine."""
        return []

    async def _start_later(self) -> None:
        """Start the rest one by one, because the others are in use by now. One that cannot start is
        logged, and its requests fail with the reason."""
        while self._later:
            model = self._later[0]
            try:
                await model.start()
            except (CantataError, OSError) as error:
                logger.error("model %s could not be started: %s", model.name, error)
                self._failed.append(model)
            self._later.remove(model)


async def _report(model: ServedPipeline, stage: StageProcess) -> StageReport:
    pong: Pong | None = None
    rss_bytes = 0
    if stage.state.is_running:
        with contextlib.suppress(StageDied, TimeoutError):
            await stage.ask(REPORT_DEADLINE_S)
        pong = stage.last_pong  # slightly old if the stage is in a long step
        rss_bytes = stage.rss_bytes
    history = model.orchestrator.restarts[stage.name]
    return StageReport(
        model=model.name,
        stage=stage.name,
        pid=stage.pid or 0,
        alive=stage.state.is_running,
        unloaded=model.orchestrator.unloaded,
        startup_s=stage.startup_s,
        rss_bytes=rss_bytes,
        counts={} if pong is None else pong.counts,
        steps=None if pong is None else pong.steps,
        reuse=None if pong is None else pong.reuse,
        state_bytes=model.orchestrator.state_bytes(stage.name),
        restarts=history.restarts,
        last_death=history.last_death,
        trouble=history.trouble,
        host=stage.host,
    )


def create_service(
    *plans: ServicePlan,
    later: Sequence[ServicePlan] = (),
    log_format: LogFormat = LogFormat.TEXT,
    remote_stages: RemoteStagesFactory | None = None,
) -> PipelineService:
    """Compose the service; nothing runs before `start`.

    Args:
        plans: the models, and how their stages are deployed.
        later: those that start once the others are ready; readiness does not wait for them.
        remote_stages: for stages whose deployment names a host. None: they all run here.

    Raises:
        ConfigError: a checkpoint is not valid, two models have the same name, or a stage names a
            host although they all run here.
    """
    gpu_memory = GpuMemory()
    pipelines = [_served(plan, log_format, remote_stages, gpu_memory) for plan in (*plans, *later)]
    names = [one.name for one in pipelines]
    if len(set(names)) != len(names):
        raise ConfigError(f"a server has each model once, not {names}")
    shared = find_shared_gpus(plan.deployment for plan in (*plans, *later))
    return PipelineService(pipelines, names[len(plans) :], MpsControl(shared))


def _served(
    plan: ServicePlan,
    log_format: LogFormat,
    remote_stages: RemoteStagesFactory | None,
    gpu_memory: GpuMemory,
) -> ServedPipeline:
    log_level = logging.getLogger().getEffectiveLevel()
    orchestrator = Orchestrator(
        plan.pipeline,
        plan.located.checkpoint,
        plan.deployment,
        log_level,
        log_format,
        _build_remote_stages(plan, remote_stages),
        gpu_memory,
    )
    policy: AdmissionPolicy
    models: Sequence[PipelineModel]
    plugin, name = plan.located.plugin, plan.located.plugin.name
    if plugin.load_transcription_builder is not None:
        policy = windows = WindowPolicy(name, orchestrator)
        listen = plugin.load_transcription_builder(plan.located.checkpoint)
        models = [PipelineTranscriptionModel(listen, windows)]
    elif plugin.load_image_builder is not None:
        policy = steps = StepPolicy(name, orchestrator, load_limits(plan.deployment))
        draw = plugin.load_image_builder(plan.located.checkpoint)
        models = [PipelineImageModel(draw, steps), *_build_chat_models(plan, policy)]
    else:
        policy = slots = SlotPolicy(name, orchestrator)
        models = _build_chat_models(plan, policy) or [_build_speech_model(plan, slots)]
    return ServedPipeline(policy, tuple(models))


def _build_chat_models(plan: ServicePlan, policy: AdmissionPolicy) -> list[PipelineChatModel]:
    load = plan.located.plugin.load_chat_builder
    if load is None:
        return []
    builder = load(plan.located.checkpoint)
    deployment = plan.deployment
    return [PipelineChatModel(builder, policy, deployment.voice_aliases, deployment.speaks)]


def _build_speech_model(plan: ServicePlan, policy: SlotPolicy) -> PipelineSpeechModel:
    deployment = plan.deployment
    return PipelineSpeechModel(
        plan.located.plugin.speech_builder(plan.located.checkpoint),
        policy,
        deployment.max_input_characters,
        deployment.sampled,
        deployment.voice_aliases,
    )


def _index_by_name(pipelines: Sequence[ServedPipeline], kind: type[M]) -> dict[str, M]:
    models = (model for one in pipelines for model in one.models if isinstance(model, kind))
    return {model.name: model for model in models}


def _build_remote_stages(
    plan: ServicePlan, make: RemoteStagesFactory | None
) -> RemoteStages | None:
    hosts = plan.deployment.hosts
    if not hosts:
        return None
    if make is None:
        raise ConfigError(
            f"model {plan.located.plugin.name!r}: stages {sorted(hosts)} name a host, but all run "
            "on one machine here"
        )
    return make(plan)


def load_limits(deployment: Deployment) -> StepLimits:
    """The limits on pictures that are drawn at the same time. Raises ConfigError: there is no stage
    that denoises, or more than one."""
    stages = [s for s in deployment.stages.values() if isinstance(s, DiffusionDeployment)]
    if len(stages) != 1:
        raise ConfigError(f"a model that draws has one stage that denoises, not {len(stages)}")
    [stage] = stages
    return StepLimits(stage.slots, stage.max_wait_s, stage.max_tokens)
