"""Builders of Ray Serve's applications: named by `cantata deploy --print`, called by Serve on the
cluster, or by `cantata deploy` itself."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from cantata.cluster.ray.arguments import EdgeArguments, ModelArguments, as_plain, read_arguments
from cantata.cluster.ray.deployments import Directory, Edge, Replica
from cantata.cluster.ray.serve_api import Application, Placement, application

_EDGE_CPUS = 1.0
"""An edge encodes and sends; one process uses at most one core."""


def directory(arguments: Mapping[str, Any]) -> Application:
    """The list of replicas."""
    return application(Directory, arguments, Placement(cpus=0.0), 1)


def replicas(arguments: Mapping[str, Any]) -> Application:
    """One model's replicas."""
    model = read_arguments(ModelArguments, arguments)
    placement = Placement(model.replicas.cpus, model.gpus, model.node, model.drain_s)
    return application(Replica, as_plain(model), placement, model.replicas)


def edges(arguments: Mapping[str, Any]) -> Application:
    """The edges, to which clients connect."""
    edge = read_arguments(EdgeArguments, arguments)
    placement = Placement(_EDGE_CPUS, node=edge.edges.node, drain_s=edge.drain_s)
    return application(Edge, as_plain(edge), placement, edge.edges.replicas)
