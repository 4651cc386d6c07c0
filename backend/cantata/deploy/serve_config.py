"""`cantata deploy`: models onto a Ray cluster, or what others would submit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import yaml

from cantata.config import ConversationDeployment, Dtype
from cantata.config.cluster import ClusterOptions
from cantata.contract.data.errors import ConfigError, NotInstalled
from cantata.distributed.ray.arguments import (
    DIRECTORY,
    EDGES,
    EdgeArguments,
    ModelArguments,
    as_plain,
)
from cantata.distributed.ray.authentication import check_authentication
from cantata.distributed.ray.manifests import as_yaml, kubernetes, serve_config
from cantata.pipeline.plan import ServicePlan, find_services
from cantata.serving.options import Form


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
    """The deployment's section, or the defaults. Raises ConfigError: there is no section, and a
    stage needs a GPU, or names a host."""
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


@dataclass(frozen=True, slots=True)
class DeployOptions:
    """What the command line says."""

    files: Sequence[Path]
    models: Sequence[str] = ()
    dtype: Dtype | None = None
    no_auth: bool = False
    api_key_file: Path | None = None


async def run(
    options: DeployOptions, form: Form | None, image: str, show: Callable[[str], None]
) -> None:
    """Deploy, or show what would be submitted; errors as of `printed` and `deploy`."""
    if form is None:
        deploy(options, show)
    else:
        show(printed(options, form, image).rstrip())


def printed(options: DeployOptions, form: Form, image: str) -> str:
    """What would be submitted, as YAML. Ray need not be installed.

    Args:
        options: as `deploy`'s.

    Raises:
        ConfigError: as of `deploy`.
    """
    edges, models, _ = _describe_applications(options)
    if form is Form.SERVE:
        return as_yaml([serve_config(edges, models)])
    return as_yaml(kubernetes(edges, models, image))


def deploy(options: DeployOptions, show: Callable[[str], None]) -> None:
    """Submit the applications, or upgrade them; returns when all of them run. Blocks.

    Raises:
        ConfigError: the deployment is not valid, Ray has no token authentication, or it cannot be
            joined or cannot start the applications.
        NotInstalled: Ray is missing.
    """
    edges, models, address = _describe_applications(options)
    join(address)
    from cantata.distributed.ray import applications, serve_api

    names = ", ".join(model.name for model in models)
    if serve_api.running() & {model.application for model in models}:
        show(f"upgrading {names}; this needs room for the replicas of max_surge_percent ...")
    else:
        show(f"starting {names} ...")
    built = {
        DIRECTORY: applications.directory({}),
        **{model.application: applications.replicas(as_plain(model)) for model in models},
        EDGES: applications.edges(as_plain(edges)),
    }
    try:
        serve_api.submit(built, wait=True)
    finally:
        serve_api.leave()
    show(
        f"{edges.edges.replicas} edge(s) listen on port {edges.edges.port}; `serve status` tells "
        "where, `serve shutdown` ends everything"
    )


def join(address: str) -> None:
    """Join a cluster as a driver, if it is one that only its users reach.

    Raises:
        ConfigError: it has no token authentication, or cannot be joined.
        NotInstalled: Ray is missing.
    """
    check_authentication(os.environ, "this command")
    try:
        from cantata.distributed.ray import serve_api
    except ImportError as error:
        raise NotInstalled("a cluster needs Ray: pip install 'cantata[ray]'") from error
    serve_api.connect(address)


def _describe_applications(
    options: DeployOptions,
) -> tuple[EdgeArguments, list[ModelArguments], str]:
    models, for_edges = describe_models(options.models, options.files, options.dtype)
    edges = describe_edges(for_edges, no_auth=options.no_auth, api_key_file=options.api_key_file)
    return edges, models, for_edges.cluster.address
