"""What is to be served, decided before the engine is imported, so that the fork server can begin to
import what the stages need."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from cantata.config import Deployment, Dtype, StageDeployment, load_deployment
from cantata.config.plugins import (
    LocatedModel,
    list_embedded_models,
    list_embedded_recognizers,
    locate,
)
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import PipelineSpec, StageSpec
from cantata.pipeline.devices import check_devices
from cantata.pipeline.spawning import preload


@dataclass(frozen=True, slots=True)
class ServicePlan:
    located: LocatedModel
    pipeline: PipelineSpec
    """The pipeline that the checkpoint uses."""
    deployment: Deployment

    @property
    def stages(self) -> list[tuple[StageSpec, StageDeployment]]:
        """The stages in the order in which data flows."""
        return [(spec, self.deployment.stages[spec.name]) for spec in self.pipeline.stages]


def plan_services(
    models: Sequence[str], deploy: Sequence[Path] = (), dtype: Dtype | None = None
) -> list[ServicePlan]:
    """What a server of several models serves.

    Args:
        models: as `plan_service`'s, each; none: all whose weights ship with them.
        deploy: deployment files of the first models, in the same order.
        dtype: as `plan_service`'s.

    Raises:
        ConfigError: there are more files than models, or as of `plan_service`.
    """
    plans = find_services(models, deploy, dtype)
    for plan in plans:
        check_devices(plan.deployment)
    return plans


def find_services(
    models: Sequence[str], deploy: Sequence[Path] = (), dtype: Dtype | None = None
) -> list[ServicePlan]:
    """Plan services for other machines: whether this one has their devices does not matter."""
    names = list(models) or list_embedded_models()
    if len(deploy) > len(names):
        raise ConfigError(f"{len(deploy)} deployment files for {len(names)} models: {names}")
    files = [*deploy, *[None] * (len(names) - len(deploy))]
    return [_find(name, file, dtype) for name, file in zip(names, files, strict=True)]


def plan_recognizer(plans: Iterable[ServicePlan]) -> list[ServicePlan]:
    """The embedded model that transcribes, for spoken conversations with others that do not.

    Args:
        plans: of the models that were asked for.

    Returns:
        Its plan; none if one of them transcribes, if nobody can talk with any of them, or if the
        package that runs it is not installed.
    """
    plugins = [plan.located.plugin for plan in plans]
    if any(plugin.load_transcription_builder is not None for plugin in plugins):
        return []
    if not any(plugin.load_builder or plugin.load_chat_builder for plugin in plugins):
        return []
    return [plan_service(name) for name in list_embedded_recognizers()[:1]]


def check_speech_models(plans: Iterable[ServicePlan]) -> None:
    """Check that the models are there that are to speak others' answers. Raises ConfigError: a
    deployment names one that is not served, or does not speak texts."""
    plugins = {plan.located.plugin.name: plan for plan in plans}
    valid = [n for n, one in plugins.items() if one.located.plugin.load_builder is not None]
    for name, one in plugins.items():
        model = one.deployment.speaks
        if model is not None and model not in valid:
            raise ConfigError(f"{name}: speaks: {model!r} speaks no texts here; valid: {valid}")


def unload_when_idle(plans: Sequence[ServicePlan], idle_s: float | None) -> list[ServicePlan]:
    """The plans with `idle_unload_s` where their deployments do not say; None: as they are."""
    if idle_s is None:
        return list(plans)
    return [replace(one, deployment=one.deployment.unloaded_when_idle(idle_s)) for one in plans]


def preload_stages(plans: Iterable[ServicePlan]) -> None:
    """Start importing what the stages need, in a process of its own; returns at once."""
    preload(stage for plan in plans for stage in plan.stages)


def plan_service(
    model: str | None, deploy: Path | None = None, dtype: Dtype | None = None
) -> ServicePlan:
    """Find the model and its deployment.

    Args:
        model: a plug-in's name, a checkpoint folder or a hub id; None serves the embedded voice.
        deploy: deployment file; None takes the plug-in's own.
        dtype: of the stages that have one; None: what the deployment says.

    Raises:
        ConfigError: no such model, or the deployment is not valid here.
    """
    plan = _find(model, deploy, dtype)
    check_devices(plan.deployment)
    return plan


def _find(model: str | None, deploy: Path | None, dtype: Dtype | None) -> ServicePlan:
    located = locate(model)
    plugin, pipeline = located.plugin, located.pipeline
    try:
        whole = load_deployment(deploy or plugin.deployment, plugin.pipeline)
    except ConfigError as error:
        # Of several models' files, one may be in another's place.
        raise ConfigError(f"{error} (for the model {plugin.name!r})") from None
    deployment = whole.only({spec.name for spec in pipeline.stages})
    if dtype is not None:
        deployment = deployment.with_dtype(dtype)
    if deployment.options:
        if plugin.configure is None:
            raise ConfigError(f"options: the model {plugin.name!r} has none; valid: {{}}")
        located = replace(located, plugin=plugin.configure(deployment.options))
    return ServicePlan(located, pipeline, deployment)
