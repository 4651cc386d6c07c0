"""What is to be served, decided before the engine is imported, so that the fork server can begin to
import what the stages need."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from cantata.config import Deployment, Dtype, load_deployment
from cantata.contract.model.pipeline import PipelineSpec
from cantata.engine.devices import check_devices
from cantata.engine.spawning import preload
from cantata.plugins import LocatedModel, locate


@dataclass(frozen=True, slots=True)
class ServicePlan:
    """A model and how its stages are deployed."""

    located: LocatedModel
    pipeline: PipelineSpec
    """Of the checkpoint."""
    deployment: Deployment

    def preload(self) -> None:
        """Start importing what the stages need, in a process of its own; returns at once."""
        preload((spec, self.deployment.stages[spec.name]) for spec in self.pipeline.stages)


def plan_service(
    model: str | None, deploy: Path | None = None, dtype: Dtype | None = None
) -> ServicePlan:
    """Find the model and its deployment.

    Args:
        model: a plug-in's name, a checkpoint folder or a hub id; None serves the embedded voice.
        deploy: deployment file; None takes the plug-in's own.
        dtype: of the AR stages; None: what the deployment says.

    Raises:
        ConfigError: no such model, or the deployment is not valid here.
    """
    located = locate(model)
    plugin, pipeline = located.plugin, located.pipeline
    whole = load_deployment(deploy or plugin.deployment, plugin.pipeline)
    deployment = whole.only({spec.name for spec in pipeline.stages})
    if dtype is not None:
        deployment = deployment.with_dtype(dtype)
    check_devices(deployment)
    return ServicePlan(located, pipeline, deployment)
