"""`cantata deploy`: models onto a Ray cluster, or what others would submit."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

from cantata.config import Dtype
from cantata.contract.data.errors import NotInstalled
from cantata.deploying.serve_config import describe_edges, describe_models
from cantata.distributed.ray.arguments import (
    DIRECTORY,
    EDGES,
    EdgeArguments,
    ModelArguments,
    as_plain,
)
from cantata.distributed.ray.authentication import check_authentication
from cantata.distributed.ray.manifests import as_yaml, kubernetes, serve_config
from cantata.serving.options import Form


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
        form: for whom.
        image: of the pods.

    Raises:
        ConfigError: as of `deploy`.
    """
    edges, models, _ = _described(options)
    if form is Form.SERVE:
        return as_yaml([serve_config(edges, models)])
    return as_yaml(kubernetes(edges, models, image))


def deploy(options: DeployOptions, show: Callable[[str], None]) -> None:
    """Submit the applications, or upgrade them; returns when all of them run. Blocks.

    Args:
        options: what to deploy.
        show: tells the operator something.

    Raises:
        ConfigError: the deployment is not valid, Ray has no token authentication, or it cannot be
            joined or cannot start the applications.
        NotInstalled: Ray is missing.
    """
    edges, models, address = _described(options)
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


def _described(options: DeployOptions) -> tuple[EdgeArguments, list[ModelArguments], str]:
    models, for_edges = describe_models(options.models, options.files, options.dtype)
    edges = describe_edges(for_edges, no_auth=options.no_auth, api_key_file=options.api_key_file)
    return edges, models, for_edges.cluster.address
