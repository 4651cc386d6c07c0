"""Builders of Ray Serve's applications: named by `cantata deploy --print`, called by Serve on the
cluster, or by `cantata deploy` itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cantata.distributed.ray.arguments import (
    EdgeArguments,
    ModelArguments,
    as_plain,
    read_arguments,
)
from cantata.distributed.ray.deployments import Directory, Edge, Replica
from cantata.distributed.ray.serve_api import Application, RayPlacement, application

_EDGE_CPUS = 1.0
"""An edge encodes and sends; one process uses at most one core."""


def directory(arguments: Mapping[str, Any]) -> Application:
    """The list of replicas."""
    return application(Directory, arguments, RayPlacement(cpus=0.0), 1)


def replicas(arguments: Mapping[str, Any]) -> Application:
    """One model's replicas."""
    model = read_arguments(ModelArguments, arguments)
    bounds = model.replicas
    placement = RayPlacement(
        bounds.cpus, model.gpus, model.node, model.drain_s, bounds.max_surge_percent
    )
    return application(Replica, as_plain(model), placement, bounds)


def edges(arguments: Mapping[str, Any]) -> Application:
    """The edges, to which clients connect."""
    edge = read_arguments(EdgeArguments, arguments)
    options = edge.edges
    surge = options.max_surge_percent
    placement = RayPlacement(
        _EDGE_CPUS, node=options.node, drain_s=edge.drain_s, max_surge_percent=surge
    )
    return application(Edge, as_plain(edge), placement, options.replicas)
