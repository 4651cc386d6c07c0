"""Command-line choices -> what is submitted to the cluster."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cantata.config import ConversationDeployment, Dtype
from cantata.config.cluster import ClusterOptions
from cantata.contract.data.errors import ConfigError
from cantata.distributed.ray.arguments import EdgeArguments, ModelArguments
from cantata.pipeline.plan import ServicePlan, find_services


@dataclass(frozen=True, slots=True)
class ForEdges:
    """What a deployment says of a cluster and its edges."""

    cluster: ClusterOptions
    realtime: ConversationDeployment


def describe_models(
    models: Sequence[str], files: Sequence[Path], dtype: Dtype | None
) -> tuple[list[ModelArguments], ForEdges]:
    """What each model's application is told.

    This machine needs the checkpoints' settings, but no GPU.

    Args:
        models: names, checkpoint folders or hub ids; none: all whose weights ship with them.
        files: deployments of the first models, in the same order.
        dtype: of the stages that have one; None: what the deployments say.

    Returns:
        The models, and what the first of them says of the edges, which are for all.

    Raises:
        ConfigError: no such model, or a deployment that is not valid or does not fit a cluster.
    """
    plans = find_services(models, files, dtype)
    names = models or [plan.located.plugin.name for plan in plans]
    own = [plan.located.plugin.deployment for plan in plans[len(files) :]]
    described = [
        _describe(name, plan, file, dtype)
        for name, plan, file in zip(names, plans, [*files, *own], strict=True)
    ]
    return described, ForEdges(get_cluster_options(plans[0]), plans[0].deployment.realtime)


def describe_edges(
    for_edges: ForEdges, *, no_auth: bool, api_key_file: Path | None
) -> EdgeArguments:
    """What the edges are told; the file of keys is one on their machines."""
    is_default = for_edges.realtime == ConversationDeployment()
    return EdgeArguments(
        edges=for_edges.cluster.edges,
        voices=for_edges.cluster.voices,
        drain_s=for_edges.cluster.drain_s,
        no_auth=no_auth,
        api_key_file=None if api_key_file is None else str(api_key_file.absolute()),
        realtime=None if is_default else for_edges.realtime,
    )


def get_cluster_options(plan: ServicePlan) -> ClusterOptions:
    """The deployment's section, or the defaults.

    Raises:
        ConfigError: there is no section, and a stage needs a GPU, or names a host.
    """
    deployment = plan.deployment
    if deployment.cluster is not None:
        return deployment.cluster
    options = ClusterOptions()
    on_gpu = [name for name, stage in deployment.stages.items() if stage.on_gpu]
    try:
        options.check_stages(on_gpu, deployment.stages, deployment.hosts)
    except ValueError as error:
        raise ConfigError(f"{plan.located.plugin.name}: {error}") from error
    return options


def _describe(name: str, plan: ServicePlan, file: Path, dtype: Dtype | None) -> ModelArguments:
    cluster = get_cluster_options(plan)
    return ModelArguments(
        name=plan.located.plugin.name,
        model=str(Path(name).absolute()) if Path(name).is_dir() else name,
        deployment=yaml.safe_load(file.read_text(encoding="utf-8")),
        dtype=dtype,
        replicas=cluster.replicas,
        gpus=cluster.gpus,
        node=next(iter(cluster.nodes), None),
        drain_s=cluster.drain_s,
    )
