"""A deployment's section `cluster`, and what is made of it without Ray."""

from __future__ import annotations

import sys
from pathlib import Path
from typing import Any

import pytest
import yaml
from typer.testing import CliRunner

from cantata.api.server.server_config import build_settings
from cantata.cli.app import app
from cantata.config import Deployment, parse_deployment
from cantata.config.cluster import ClusterOptions
from cantata.config.plugins import locate
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.deploy.edge_process import build_operator_options
from cantata.distributed.ray.arguments import (
    EdgeArguments,
    ModelArguments,
    as_plain,
    read_arguments,
)
from cantata.speech_input.settings import Endpoint

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "m:t"),
        StageSpec("decoder", StageKind.CODEC, "m:d"),
    ),
    edges=(EdgeSpec("talker.codes", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
)
ON_GPU: dict[str, Any] = {"talker": {"device": "cuda"}, "decoder": {"device": "cuda"}}
SHIPPED = locate(None).plugin


def parsed(cluster: object, stages: dict[str, Any] | None = None) -> Deployment:
    raw = {"stages": stages or {"talker": {}, "decoder": {}}, "cluster": cluster}
    return parse_deployment(raw, PIPELINE)


def test_everything_has_a_default_except_what_has_none() -> None:
    cluster = parsed({}).cluster
    assert cluster == ClusterOptions()
    assert (cluster.address, cluster.replicas.min, cluster.replicas.most) == ("auto", 1, 1)
    assert parse_deployment({"stages": {"talker": {}, "decoder": {}}}, PIPELINE).cluster is None


def test_stages_share_what_ray_gives_a_replica() -> None:
    node = "ray.io/accelerator-type=H100"
    stages = {"talker": {"gpus": 0.6, "node": node}, "decoder": {"gpus": 0.4}}
    cluster = parsed({"stages": stages}, ON_GPU).cluster
    assert cluster is not None
    assert (cluster.gpus, cluster.nodes) == (1.0, frozenset({node}))
    assert cluster.only(["talker"]).gpus == 0.6


@pytest.mark.parametrize(
    ("cluster", "stages", "message"),
    [
        ({"address": "ray://head:10001"}, None, "cannot serve"),
        ({"address": "head"}, None, "HOST:PORT of Ray's head"),
        ({"address": "head:0"}, None, "HOST:PORT of Ray's head"),
        ({"replicas": {"min": 3, "max": 2}}, None, "max 2 must be at least min 3"),
        ({"replicas": {"min": 0}}, None, "greater than or equal to 1"),
        ({"replicas": {"fill": 1.5}}, None, "less than or equal to 1"),
        ({"replica": {}}, None, r"cluster\.replica: Extra inputs"),
        ({"edges": {"port": 70_000}}, None, r"cluster\.edges\.port"),
        ({"voices": "/shared/voices"}, None, "file:///shared/voices"),
        ({"edges": {"node": "h100"}}, None, "KEY=VALUE"),
        ({"stages": {"talkr": {}}}, None, r"talkr.*valid: \['decoder', 'talker'\]"),
        (
            {"stages": {"talker": {"gpus": 1.0}}},
            None,
            r"'cuda', \[\], and to no others; they are given to \['talker'\]",
        ),
        (
            {"stages": {"talker": {"gpus": 1.0}}},
            ON_GPU,
            r"\['decoder', 'talker'\], and to no others",
        ),
        (
            {"stages": {"talker": {"gpus": 1.0}, "decoder": {"gpus": 0.5}}},
            ON_GPU,
            "add up to 1.5; Ray gives",
        ),
        (
            {"stages": {"talker": {"node": "a=b"}, "decoder": {"node": "a=c"}}},
            None,
            r"on one machine, so they cannot ask for \['a=b', 'a=c'\]",
        ),
        (
            {},
            {"talker": {"host": "10.0.0.8:8200"}, "decoder": {}},
            r"on one machine, so the stages \['talker'\] cannot name a host",
        ),
    ],
)
def test_mistakes_are_named(cluster: object, stages: dict[str, Any] | None, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parsed(cluster, stages)


def deployment_file(folder: Path, cluster: dict[str, Any], **more: object) -> Path:
    own = yaml.safe_load(SHIPPED.deployment.read_text(encoding="utf-8"))
    file = folder / "deploy.yaml"
    file.write_text(yaml.safe_dump({**own, **more, "cluster": cluster}), encoding="utf-8")
    return file


def deploy(*words: str) -> tuple[int, str]:
    result = CliRunner().invoke(app, ["deploy", *words])
    return result.exit_code, result.output


def test_what_serve_would_be_told_is_printed(tmp_path: Path) -> None:
    """The arguments that arrive on the cluster are those of the file, all of them."""
    chosen = {
        "edges": {"replicas": 2, "port": 9000},
        "replicas": {"min": 2, "max": 5, "cpus": 2.0},
        "voices": "s3://bucket/voices",
        "drain_s": 30,
    }
    file = deployment_file(tmp_path, chosen)
    code, output = deploy(str(file), "--model", SHIPPED.name, "--no-auth", "--print", "serve")
    assert code == 0, output
    config = yaml.safe_load(output)
    assert config["proxy_location"] == "Disabled"
    applications = {one["name"]: one for one in config["applications"]}
    assert [one["route_prefix"] for one in config["applications"]] == [None] * 3
    name = f"cantata-model-{SHIPPED.name}"
    assert list(applications) == ["cantata-directory", name, "cantata-edges"]
    model = read_arguments(ModelArguments, applications[name]["args"])
    assert (model.replicas.min, model.replicas.max, model.drain_s) == (2, 5, 30)
    assert model.deployment == yaml.safe_load(file.read_text(encoding="utf-8"))
    edge = read_arguments(EdgeArguments, applications["cantata-edges"]["args"])
    assert (edge.edges.port, edge.voices, edge.no_auth) == (9000, "s3://bucket/voices", True)
    assert as_plain(model) == applications[name]["args"]


def test_edges_hear_and_answer_as_the_first_deployment_says(tmp_path: Path) -> None:
    said = {"chat_url": "http://there/v1", "chat_model": "a model"}
    file = deployment_file(tmp_path, {}, realtime=said)
    code, output = deploy(str(file), "--model", SHIPPED.name, "--no-auth", "--print", "serve")
    assert code == 0, output
    applications = {one["name"]: one for one in yaml.safe_load(output)["applications"]}
    edge = read_arguments(EdgeArguments, applications["cantata-edges"]["args"])
    settings = build_settings(build_operator_options(edge), "127.0.0.1")
    assert settings.realtime.chat == Endpoint("http://there/v1", "a model", None)
    assert settings.realtime.transcription is None


def test_a_ray_service_has_a_group_for_the_edges_and_one_for_each_model(tmp_path: Path) -> None:
    file = deployment_file(tmp_path, {"replicas": {"min": 2, "max": 5}, "edges": {"replicas": 3}})
    code, output = deploy(
        str(file), "--model", SHIPPED.name, "--print", "kubernetes", "--image", "here:1"
    )
    assert code == 0, output
    service, front = yaml.safe_load_all(output)
    cluster = service["spec"]["rayClusterConfig"]
    assert cluster["authOptions"] == {"mode": "token"}
    assert cluster["enableInTreeAutoscaling"] is True
    edges, model = cluster["workerGroupSpecs"]
    assert (edges["groupName"], edges["minReplicas"], edges["maxReplicas"]) == ("edges", 3, 3)
    assert (model["groupName"], model["minReplicas"], model["maxReplicas"]) == (SHIPPED.name, 2, 5)
    containers = [
        group["template"]["spec"]["containers"][0]
        for group in (cluster["headGroupSpec"], edges, model)
    ]
    assert {one["image"] for one in containers} == {"here:1"}
    # KubeRay's own probes would ask Serve's proxy, which does not run.
    assert all("httpGet" in one["readinessProbe"] for one in containers)
    assert {"name": "RAY_worker_niceness", "value": "0"} in containers[2]["env"]
    assert front["spec"]["selector"].items() <= edges["template"]["metadata"]["labels"].items()
    placed = yaml.safe_load(service["spec"]["serveConfigV2"])["applications"][-1]["args"]
    assert placed["edges"]["node"] == f"ray.io/node-group={edges['groupName']}"


def test_ray_without_a_token_is_refused_before_anything_else(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("RAY_AUTH_MODE", raising=False)
    monkeypatch.setitem(sys.modules, "ray", None)
    # As in a process that has not imported Ray before.
    monkeypatch.setitem(sys.modules, "cantata.distributed.ray.serve_api", None)
    monkeypatch.delattr("cantata.distributed.ray.serve_api", raising=False)
    file = str(deployment_file(tmp_path, {}))
    code, output = deploy(file, "--model", SHIPPED.name)
    assert code == 1
    assert "ray get-auth-token --generate" in output
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    code, output = deploy(file, "--model", SHIPPED.name)
    assert code == 1
    assert "pip install 'cantata[ray]'" in output


def test_a_gpu_without_a_section_that_asks_for_one_is_refused(tmp_path: Path) -> None:
    own = yaml.safe_load(SHIPPED.deployment.read_text(encoding="utf-8"))
    stage = next(iter(own["stages"]))
    own["stages"][stage]["device"] = "cuda"
    file = tmp_path / "deploy.yaml"
    file.write_text(yaml.safe_dump(own), encoding="utf-8")
    code, output = deploy(str(file), "--model", SHIPPED.name, "--print", "serve")
    assert code == 1
    assert f"give gpus to the stages with device 'cuda', ['{stage}']" in " ".join(output.split())


def test_arguments_of_another_version_are_named() -> None:
    with pytest.raises(ConfigError, match="replicas"):
        read_arguments(ModelArguments, {"name": "a", "model": "a", "deployment": {}, "drain_s": 1})
