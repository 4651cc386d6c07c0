"""What is used of Ray is there, alpha or not; skipped where Ray is not installed."""

from __future__ import annotations

import inspect
from importlib.metadata import version
from importlib.util import find_spec
from types import SimpleNamespace

import pytest

if find_spec("ray") is None:
    pytest.skip("Ray is not installed", allow_module_level=True)

# Ray itself uses what pydantic deprecates.
pytestmark = pytest.mark.filterwarnings("ignore")


def test_the_version_is_the_pinned_one() -> None:
    assert version("ray").startswith("2.60.")


def test_run_many_and_start_take_what_they_are_given() -> None:
    from ray import serve
    from ray.serve.api import RunTarget

    many = inspect.signature(serve.run_many).parameters
    assert {"wait_for_ingress_deployment_creation", "wait_for_applications_running"} <= set(many)
    assert list(inspect.signature(RunTarget).parameters)[:2] == ["target", "name"]
    assert "route_prefix" in inspect.signature(RunTarget).parameters
    assert "proxy_location" in inspect.signature(serve.start).parameters


def test_an_application_of_each_kind_is_accepted() -> None:
    from cantata.config.cluster import EdgesOptions, ReplicasOptions
    from cantata.distributed.ray import applications
    from cantata.distributed.ray.arguments import EdgeArguments, ModelArguments, as_plain

    model = ModelArguments(
        name="a",
        model="a",
        deployment={},
        replicas=ReplicasOptions(min=2, max=3, fill=0.5, max_surge_percent=50),
        gpus=1.0,
        node="kind=fast",
        drain_s=60,
    )
    edge = EdgeArguments(edges=EdgesOptions(replicas=2), drain_s=60)
    deployment = applications.replicas(as_plain(model))._bound_deployment
    assert deployment.ray_actor_options["num_gpus"] == 1.0
    assert deployment.ray_actor_options["label_selector"] == {"kind": "fast"}
    scaling = deployment._deployment_config.autoscaling_config
    assert (scaling.min_replicas, scaling.max_replicas) == (2, 3)
    assert (scaling.upscale_delay_s, scaling.downscale_delay_s) == (10, 600)
    assert deployment._deployment_config.graceful_shutdown_timeout_s > 60
    assert deployment._deployment_config.max_surge_percent == 50
    edges = applications.edges(as_plain(edge))._bound_deployment
    assert (edges.num_replicas, edges._deployment_config.max_surge_percent) == (2, 20)
    assert applications.directory({})._bound_deployment.num_replicas == 1


def test_the_policy_reads_serves_context() -> None:
    """As Serve makes it: a class with its arguments, called with what replicas recorded."""
    from ray.serve.config import AutoscalingContext

    from cantata.config.cluster import ReplicasOptions
    from cantata.distributed.ray.serve_api import scaling

    config = scaling(ReplicasOptions(min=1, max=9, fill=0.5))
    policy = config.policy.get_policy()(**config.policy.policy_kwargs)
    given = dict.fromkeys(inspect.signature(AutoscalingContext).parameters)
    told = {"places": {"a": 10.0, "b": 10.0}, "in_use": {"a": 9.0, "b": 8.0}, "waiting": {"a": 4.0}}
    context = AutoscalingContext(**{**given, "aggregated_metrics": told, "target_num_replicas": 2})
    assert policy(context) == (5, {})
    silent = SimpleNamespace(aggregated_metrics={}, target_num_replicas=2)
    assert policy(silent) == (2, {})


def test_serve_looks_for_the_methods_by_these_names() -> None:
    from ray.serve._private import replica
    from ray.serve._private.constants import HEALTH_CHECK_METHOD

    assert HEALTH_CHECK_METHOD == "check_health"
    source = inspect.getsource(replica)
    for name in ("record_autoscaling_stats", "__del__"):
        assert f'"{name}"' in source, name
