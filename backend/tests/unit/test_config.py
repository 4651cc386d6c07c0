"""Deployments are strict: errors are rejected, and the message says what is valid."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from cantata.config import ArDeployment, CodecDeployment, load_deployment, parse_deployment
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import EdgeSpec, PipelineSpec, StageKind, StageSpec

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "m:t"),
        StageSpec("decoder", StageKind.CODEC, "m:d"),
    ),
    edges=(EdgeSpec("talker", "decoder"),),
)


def test_another_dtype_is_that_of_the_ar_stages() -> None:
    deployment = parse_deployment({"stages": {"talker": {"slots": 3}, "decoder": {}}}, PIPELINE)
    changed = deployment.with_dtype("bfloat16")
    talker = changed.stages["talker"]
    assert isinstance(talker, ArDeployment)
    assert (talker.slots, talker.dtype) == (3, "bfloat16")
    assert changed.stages["decoder"] == deployment.stages["decoder"]


@pytest.mark.parametrize("temperature", [0.0, 0.9])
def test_a_deployment_samples_at_a_temperature(temperature: float) -> None:
    talker = {"sampling": {"temperature": temperature}}
    deployment = parse_deployment({"stages": {"talker": talker, "decoder": {}}}, PIPELINE)
    assert deployment.sampled == (temperature > 0)


def test_stages_get_the_settings_of_their_kind() -> None:
    deployment = parse_deployment({"stages": {"talker": {"slots": 3}, "decoder": {}}}, PIPELINE)
    assert isinstance(deployment.stages["talker"], ArDeployment)
    assert deployment.stages["talker"].slots == 3
    assert isinstance(deployment.stages["decoder"], CodecDeployment)
    assert deployment.async_chunk is True


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"stages": {"talker": {}}}, r"valid: \['talker', 'decoder'\]"),
        ({"stages": {"talker": {}, "decoder": {}, "extra": {}}}, "extra"),
        ({"stages": {"talker": {"slotz": 3}, "decoder": {}}}, r"talker: slotz.*\n.*slots"),
        ({"stages": {"talker": {"slots": "3"}, "decoder": {}}}, r"slots: Input should be a valid"),
        ({"stages": {"talker": {"slots": 0}, "decoder": {}}}, "greater than or equal to 1"),
        ({"stages": {"talker": {"device": "tpu"}, "decoder": {}}}, "'cpu' or 'cuda'"),
        ({"stages": {"talker": {}, "decoder": {}}, "async": True}, r"async:.*\n.*async_chunk"),
        ({"stages": {"talker": {}, "decoder": {}}, "async_chunk": 1}, "valid boolean"),
        ({"stages": ["talker"]}, "mapping from stage name"),
    ],
)
def test_mistakes_are_named_with_the_valid_values(raw: dict[str, Any], message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        parse_deployment(raw, PIPELINE)


def test_unreadable_files_are_named(tmp_path: Path) -> None:
    with pytest.raises(ConfigError, match=r"missing\.yaml"):
        load_deployment(tmp_path / "missing.yaml", PIPELINE)
    broken = tmp_path / "broken.yaml"
    broken.write_text("stages: [")
    with pytest.raises(ConfigError, match="not YAML"):
        load_deployment(broken, PIPELINE)
    broken.write_text("- a list")
    with pytest.raises(ConfigError, match="is a mapping"):
        load_deployment(broken, PIPELINE)


@pytest.mark.parametrize(
    ("stages", "edges", "message"),
    [
        (("a", "a"), (), "must differ"),
        (("a", "b"), (("a", "c"),), "unknown stage 'c'"),
        (("a", "b"), (("b", "a"),), "against the order"),
        (("a", "b"), (), "exactly one last stage"),
    ],
)
def test_impossible_pipelines_are_rejected(
    stages: tuple[str, ...], edges: tuple[tuple[str, str], ...], message: str
) -> None:
    specs = tuple(StageSpec(name, StageKind.CODEC, "m:f") for name in stages)
    with pytest.raises(ConfigError, match=message):
        PipelineSpec(specs, tuple(EdgeSpec(*edge) for edge in edges))
