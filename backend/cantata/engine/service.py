"""The models that this server offers, behind the interface that the api speaks to."""

from __future__ import annotations

import asyncio
import contextlib
import logging
from collections.abc import Mapping, Sequence

import psutil

from cantata.contract.data.errors import ModelNotFound, StageDied
from cantata.contract.process.messages import Pong
from cantata.contract.service import StageReport
from cantata.engine.chat_model import PipelineChatModel
from cantata.engine.orchestrator import Orchestrator
from cantata.engine.plan import ServicePlan
from cantata.engine.served_model import PipelineModel
from cantata.engine.stage_handle import StageHandle, StageState
from cantata.logs import LogFormat

DRAIN_DEADLINE_S = 5.0
REPORT_DEADLINE_S = 0.5
"""A stage in a long step answers later; `/health` and `/metrics` do not wait longer."""
DEFAULT_MODEL_ALIASES = ("tts-1", "tts-1-hd", "gpt-4o-mini-tts")
"""Names that clients send routinely; they select the default model."""


class PipelineService:
    """Implements `contract.chat_service.ChatService` over pipelines in stage processes."""

    def __init__(
        self, models: Sequence[PipelineModel], chat_models: Sequence[PipelineChatModel] = ()
    ) -> None:
        self.models: Mapping[str, PipelineModel] = {model.name: model for model in models}
        self.chat_models: Mapping[str, PipelineChatModel] = {m.name: m for m in chat_models}
        self.default_model = models[0].name if models else ""
        self._served: tuple[PipelineModel | PipelineChatModel, ...] = (*models, *chat_models)

    @property
    def ready(self) -> bool:
        """Whether every model is ready."""
        return all(model.orchestrator.ready for model in self._served)

    def model(self, name: str) -> PipelineModel:
        """Look a model up by name.

        Raises:
            ModelNotFound: lists the served names.
        """
        if name in DEFAULT_MODEL_ALIASES:
            name = self.default_model
        if name not in self.models:
            served = ", ".join(self.models) or "none"
            raise ModelNotFound(f"no model {name!r} that speaks texts; served: {served}", "model")
        return self.models[name]

    def chat_model(self, name: str | None) -> PipelineChatModel:
        """Look up a model that answers messages.

        Raises:
            ModelNotFound: lists the served names.
        """
        if name is None and self.chat_models:
            name = next(iter(self.chat_models))
        if name is None or name not in self.chat_models:
            served = ", ".join(self.chat_models) or "none"
            raise ModelNotFound(f"no model {name!r} that answers; served: {served}", "model")
        return self.chat_models[name]

    async def start(self) -> None:
        """Start every model.

        Raises:
            StageDied: one could not start; nothing is left running.
        """
        try:
            async with asyncio.TaskGroup() as group:
                for model in self._served:
                    group.create_task(model.start(), name=f"start:{model.name}")
        except ExceptionGroup as errors:
            await self.stop()
            raise errors.exceptions[0] from errors

    async def stop(self) -> None:
        """Drain and end every stage process."""
        await asyncio.gather(*(model.stop(DRAIN_DEADLINE_S) for model in self._served))

    async def stage_reports(self) -> list[StageReport]:
        """The state of every stage process, and what it holds."""
        stages = [
            (model, stage) for model in self._served for stage in model.orchestrator.stages.values()
        ]
        return list(await asyncio.gather(*(_report(model, stage) for model, stage in stages)))


async def _report(model: PipelineModel | PipelineChatModel, stage: StageHandle) -> StageReport:
    pong: Pong | None = None
    rss_bytes = 0
    if stage.state is StageState.READY:
        with contextlib.suppress(StageDied, TimeoutError):
            await stage.ask(REPORT_DEADLINE_S)
        pong = stage.last_pong  # slightly old if the stage is in a long step
        with contextlib.suppress(psutil.Error, OSError):  # no free descriptor to read it
            rss_bytes = psutil.Process(stage.pid).memory_info().rss
    history = model.orchestrator.restarts[stage.name]
    return StageReport(
        model=model.name,
        stage=stage.name,
        pid=stage.pid or 0,
        alive=stage.state is StageState.READY,
        startup_s=stage.startup_s,
        rss_bytes=rss_bytes,
        counts={} if pong is None else pong.counts,
        steps=None if pong is None else pong.steps,
        reuse=None if pong is None else pong.reuse,
        state_bytes=model.orchestrator.state_bytes(stage.name),
        restarts=history.restarts,
        last_death=history.last_death,
        trouble=history.trouble,
    )


def create_service(plan: ServicePlan, log_format: LogFormat = LogFormat.TEXT) -> PipelineService:
    """Compose the service for one model; nothing runs before `start`.

    Args:
        plan: the model, and how its stages are deployed.
        log_format: of the stage processes.

    Raises:
        ConfigError: the checkpoint is not valid.
    """
    plugin, checkpoint = plan.located.plugin, plan.located.checkpoint
    deployment = plan.deployment
    log_level = logging.getLogger().getEffectiveLevel()
    orchestrator = Orchestrator(plan.pipeline, checkpoint, deployment, log_level, log_format)
    if plugin.load_chat_builder is not None:
        answering = PipelineChatModel(
            plugin.name, plugin.load_chat_builder(checkpoint), orchestrator
        )
        return PipelineService([], [answering])
    served = PipelineModel(
        plugin,
        plugin.speech_builder(checkpoint),
        orchestrator,
        deployment.max_input_characters,
        deployment.sampled,
    )
    return PipelineService([served])
