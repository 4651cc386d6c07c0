"""Ray, as far as it is used here: the only module that imports it.

Some of this is marked alpha by Ray: `AutoscalingPolicy` with a class, `AutoscalingContext`,
`record_autoscaling_stats`, `label_selector`, `run_many`. The version is pinned, and
`test_ray_signatures.py` checks what is used.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import ray
from ray import serve
from ray.serve import Application as Application
from ray.serve.api import RunTarget
from ray.serve.config import AutoscalingConfig, AutoscalingPolicy

from cantata.config.cluster import NodeLabel, ReplicasOptions
from cantata.contract.data.errors import ConfigError
from cantata.distributed.ray.arguments import DIRECTORY
from cantata.distributed.ray.membership import (
    DOWN_AFTER_S,
    UP_AFTER_S,
    QueueDepth,
    ReplicaLoad,
    wanted,
)

_HEALTH_PERIOD_S = 1.0
_HEALTH_TIMEOUT_S = 30.0
"""A machine that is merely busy may take long to answer."""
_LOOK_BACK_S = 15.0
"""Serve requires more than the 10 s between the replicas' reports of their figures."""
_SHUTDOWN_MARGIN_S = 20.0
"""Beyond the time for draining: for the process to end, or to be killed."""
_POLICY = f"{__name__}:PlacesPolicy"
_ENDED = frozenset({"DEPLOY_FAILED", "DELETING"})
CALL_LIMIT_S = 5.0
"""For the directory's answer."""
_CALLS_AT_ONCE = 1000


@dataclass(frozen=True, slots=True)
class RayPlacement:
    """What Ray reserves for one process, and how long it may take to end."""

    cpus: float
    gpus: float = 0.0
    node: NodeLabel | None = None
    drain_s: float = 0.0
    max_surge_percent: int = 0
    """As of `ReplicasOptions`."""


class PlacesPolicy:
    """Serve's autoscaling by places; Serve adds the bounds and the delays. `fill`: part of the
    places that is to be taken."""

    def __init__(self, fill: float) -> None:
        self._fill = fill

    def __call__(self, context: Any) -> tuple[int, dict[str, Any]]:
        """The number of replicas, from what they reported lately (`record_autoscaling_stats`)."""
        metrics: Mapping[str, Mapping[Any, float]] = context.aggregated_metrics or {}
        columns = [metrics.get(name, {}) for name in ("places", "in_use", "waiting")]
        loads = [
            ReplicaLoad(*(column.get(replica, 0.0) for column in columns)) for replica in columns[0]
        ]
        return wanted(loads, self._fill, context.target_num_replicas), {}


def application(
    kind: type, arguments: Mapping[str, Any], placement: RayPlacement, count: int | ReplicasOptions
) -> Application:
    """An application of one deployment.

    Args:
        kind: its class, made with `arguments`, on each of the machines.
        arguments: plain data.
        count: of replicas, or bounds between which Serve scales.
    """
    label = (placement.node or "").partition("=")
    options: dict[str, Any] = {
        "name": kind.__name__,
        "max_ongoing_requests": _CALLS_AT_ONCE,
        "health_check_period_s": _HEALTH_PERIOD_S,
        "health_check_timeout_s": _HEALTH_TIMEOUT_S,
        "graceful_shutdown_timeout_s": placement.drain_s + _SHUTDOWN_MARGIN_S,
        "graceful_shutdown_wait_loop_s": 0.1,
        "max_surge_percent": placement.max_surge_percent,
        # Replicas and edges call the directory each second.
        "logging_config": {"enable_access_log": False},
        "ray_actor_options": {
            "num_cpus": placement.cpus,
            "num_gpus": placement.gpus,
            **({"label_selector": {label[0]: label[2]}} if placement.node else {}),
        },
    }
    if isinstance(count, int):
        options["num_replicas"] = count
    else:
        options["autoscaling_config"] = scaling(count)
    return serve.deployment(**options)(kind).bind(dict(arguments))


def scaling(bounds: ReplicasOptions) -> AutoscalingConfig:
    """Serve's settings for these bounds."""
    return AutoscalingConfig(
        min_replicas=bounds.min,
        max_replicas=bounds.most,
        upscale_delay_s=UP_AFTER_S,
        downscale_delay_s=DOWN_AFTER_S,
        look_back_period_s=_LOOK_BACK_S,
        policy=AutoscalingPolicy(policy_function=_POLICY, policy_kwargs={"fill": bounds.fill}),
    )


def connect(address: str) -> None:
    """Join the cluster as a driver. Raises ConfigError: there is none, or it does not accept this
    machine's token."""
    try:
        ray.init(address=address, log_to_driver=False, logging_level=logging.WARNING)
    except (ConnectionError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise ConfigError(
            f"no Ray cluster at {address!r} that this machine may join: {error}"
        ) from error


def submit(applications: Mapping[str, Application], *, wait: bool) -> None:
    """Run applications by name; those that run already get new replicas, in place of the old
    ones as their surge allows. Blocks.

    Args:
        applications: as `application` makes them.
        wait: until all of them run.

    Raises:
        ConfigError: one could not be started.
    """
    targets = [RunTarget(app, name, route_prefix=None) for name, app in applications.items()]
    serve.start(proxy_location="Disabled")
    try:
        serve.run_many(
            targets,
            wait_for_ingress_deployment_creation=wait,
            wait_for_applications_running=wait,
        )
    except RuntimeError as error:
        raise ConfigError(f"the cluster could not start everything: {error}") from error


def running() -> frozenset[str]:
    """Names of the applications that run, or begin to."""
    metrics = serve.status().applications
    return frozenset(name for name, one in metrics.items() if one.status not in _ENDED)


def leave() -> None:
    """Leave the cluster; what was submitted stays."""
    ray.shutdown()


def get_node_address() -> str:
    """Where other machines reach this one."""
    return str(ray.util.get_node_ip_address())


class DirectoryHandle:
    """The directory, from a process that Ray knows."""

    def __init__(self) -> None:
        self._handle: Any = None

    async def announce(self, id: str, address: str, model: str, *, serving: bool) -> QueueDepth:
        """As `MembershipTable.announce`. Raises DirectoryGone: it does not answer."""
        demand: QueueDepth = await self._call("announce", id, address, model, serving)
        return demand

    async def read(self, edge: str, waiting: Mapping[str, int]) -> Mapping[str, Any]:
        """As `MembershipTable.read`, plain; errors as of `announce`."""
        found: Mapping[str, Any] = await self._call("read", edge, dict(waiting))
        return found

    async def _call(self, method: str, *arguments: object) -> Any:
        try:
            if self._handle is None:  # it may be deployed after us
                self._handle = serve.get_deployment_handle("Directory", app_name=DIRECTORY)
            async with asyncio.timeout(CALL_LIMIT_S):
                return await getattr(self._handle, method).remote(*arguments)
        except TimeoutError:
            raise DirectoryGone(f"no answer within {CALL_LIMIT_S:g} s") from None
        except (KeyError, ray.exceptions.RayError, serve.exceptions.RayServeException) as error:
            raise DirectoryGone(str(error)) from error


class DirectoryGone(Exception):
    """The directory does not answer now. Serve restarts it."""
