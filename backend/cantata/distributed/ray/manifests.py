"""Configurations to submit with other tools: Ray Serve's, and KubeRay's RayService around it. Pure;
made without Ray."""

from __future__ import annotations

import math
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

import yaml

from cantata.config.cluster import NodeLabel
from cantata.distributed.ray.arguments import (
    DIRECTORY,
    EDGES,
    EdgeArguments,
    ModelArguments,
    as_plain,
)

_BUILDERS = "cantata.distributed.ray.applications"
_EDGE_GROUP = "edges"
_GROUP_LABEL: NodeLabel = f"ray.io/node-group={_EDGE_GROUP}"
"""KubeRay gives every node the label of its group."""
OBJECT_STORE_BYTES = 100_000_000
"""It holds no sound; Ray's default is a third of the memory."""
_RAYLET_HEALTH = {"path": "/api/local_raylet_healthz", "port": 52365}
_SECRET, _SECRET_KEY = "cantata", "api-keys"

Plain = dict[str, Any]


def serve_config(edges: EdgeArguments, models: Iterable[ModelArguments]) -> Plain:
    """What `serve deploy` takes: the directory, the edges, and each model, as applications."""
    applications = [
        _build_application(DIRECTORY, "directory", {}),
        *(_build_application(one.application, "replicas", as_plain(one)) for one in models),
        _build_application(EDGES, "edges", as_plain(edges)),
    ]
    return {"proxy_location": "Disabled", "applications": applications}


def kubernetes(
    edges: EdgeArguments, models: Sequence[ModelArguments], image: str
) -> tuple[Plain, Plain]:
    """A RayService with a group of pods for the edges and one for each model, and the Service in
    front of the edges.

    API keys come from the key `api-keys` of the Secret `cantata`, Ray's token from KubeRay.

    Args:
        edges: the edges; their label becomes that of their group.
    """
    placed = edges.model_copy(
        update={"edges": edges.edges.model_copy(update={"node": _GROUP_LABEL})}
    )
    groups = [_build_edge_group(edges, image), *(_build_model_group(one, image) for one in models)]
    config = as_yaml([serve_config(placed, models)])
    cluster = {
        "authOptions": {"mode": "token"},
        "enableInTreeAutoscaling": any(m.replicas.most > m.replicas.min for m in models),
        "headGroupSpec": {
            "rayStartParams": {**_start_parameters(), "num-cpus": "0"},
            "template": _build_pod(image, {"cpu": "2", "memory": "4Gi"}, _RAYLET_HEALTH),
        },
        "workerGroupSpecs": groups,
    }
    service = {
        "apiVersion": "ray.io/v1",
        "kind": "RayService",
        "metadata": {"name": "cantata"},
        "spec": {"serveConfigV2": config, "rayClusterConfig": cluster},
    }
    return service, _build_front(edges.edges.port)


def as_yaml(documents: Sequence[Mapping[str, Any]]) -> str:
    """One YAML file of them, for people to read."""
    return yaml.dump_all(documents, Dumper=_Readable, sort_keys=False)


class _Readable(yaml.SafeDumper):
    """Writes repeated values in full, and texts of several lines as blocks."""

    def ignore_aliases(self, data: object) -> bool:
        return True


def _represent_text(dumper: yaml.SafeDumper, text: str) -> yaml.ScalarNode:
    style = "|" if "\n" in text else None
    return dumper.represent_scalar("tag:yaml.org,2002:str", text, style=style)


_Readable.add_representer(str, _represent_text)


def _build_application(name: str, builder: str, arguments: Plain) -> Plain:
    return {
        "name": name,
        "import_path": f"{_BUILDERS}:{builder}",
        "route_prefix": None,
        "args": arguments,
    }


def _build_edge_group(edges: EdgeArguments, image: str) -> Plain:
    port = edges.edges.port
    keys = {"secretKeyRef": {"name": _SECRET, "key": _SECRET_KEY}}
    pod = _build_pod(
        image,
        {"cpu": "2", "memory": "4Gi"},
        {"path": "/ready", "port": port},
        ports=[{"containerPort": port, "name": "http"}],
        environment=[] if edges.no_auth else [{"name": "CANTATA_API_KEYS", "valueFrom": keys}],
    )
    pod["metadata"] = {"labels": {"cantata": _EDGE_GROUP}}
    count = edges.edges.replicas
    return _group(_EDGE_GROUP, count, count, pod, edges.edges.node)


def _build_model_group(model: ModelArguments, image: str) -> Plain:
    limits: Plain = {"cpu": str(math.ceil(model.replicas.cpus))}
    if model.gpus:
        limits["nvidia.com/gpu"] = str(math.ceil(model.gpus))
    name = model.name.replace("_", "-").lower()
    pod = _build_pod(image, limits, _RAYLET_HEALTH)
    return _group(name, model.replicas.min, model.replicas.most, pod, model.node)


def _group(name: str, min_pods: int, max_pods: int, pod: Plain, node: NodeLabel | None) -> Plain:
    key, _, value = (node or "").partition("=")
    return {
        "groupName": name,
        "replicas": min_pods,
        "minReplicas": min_pods,
        "maxReplicas": max_pods,
        "rayStartParams": _start_parameters(),
        **({"labels": {key: value}} if node else {}),
        "template": pod,
    }


def _start_parameters() -> Plain:
    return {"object-store-memory": str(OBJECT_STORE_BYTES)}


def _build_pod(
    image: str,
    limits: Plain,
    ready: Plain,
    ports: Sequence[Plain] = (),
    environment: Sequence[Plain] = (),
) -> Plain:
    """One container, with its own probe: KubeRay's would query Serve's proxy, and there is none."""
    container = {
        "name": "ray",
        "image": image,
        "env": [{"name": "RAY_worker_niceness", "value": "0"}, *environment],
        "ports": list(ports),
        "resources": {"limits": limits, "requests": limits},
        "readinessProbe": {"httpGet": ready, "periodSeconds": 2, "timeoutSeconds": 2},
    }
    return {"spec": {"containers": [container]}}


def _build_front(port: int) -> Plain:
    return {
        "apiVersion": "v1",
        "kind": "Service",
        "metadata": {"name": "cantata"},
        "spec": {
            "type": "LoadBalancer",
            "selector": {"cantata": _EDGE_GROUP},
            "ports": [{"name": "http", "port": port, "targetPort": port}],
        },
    }
