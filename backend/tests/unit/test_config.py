"""Deployments are strict: errors are rejected, and the message says what is valid."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from cantata.config import (
    ArDeployment,
    CodecDeployment,
    Deployment,
    load_deployment,
    parse_deployment,
)
from cantata.contract.data.chunks import Codes, Rows
from cantata.contract.data.errors import ConfigError
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from tiny_painter.scribe import PLUGIN as SCRIBE
from tiny_talker.plugin import ENCODED

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "m:t"),
        StageSpec("decoder", StageKind.CODEC, "m:d"),
    ),
    edges=(EdgeSpec("talker.codes", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
)


def test_another_dtype_is_that_of_the_ar_stages() -> None:
    deployment = parse_deployment({"stages": {"talker": {"slots": 3}, "decoder": {}}}, PIPELINE)
    changed = deployment.with_dtype("bfloat16")
    talker = changed.stages["talker"]
    assert isinstance(talker, ArDeployment)
    assert (talker.slots, talker.dtype) == (3, "bfloat16")
    assert changed.stages["decoder"] == deployment.stages["decoder"]


@pytest.mark.parametrize("other", [{"device": "cuda"}, {"dtype": "float16"}])
def test_int8_is_for_a_cpu_and_two_dtypes(other: dict[str, str]) -> None:
    int8 = {"quantization": "int8", "dtype": "bfloat16"}
    plain = parse_deployment({"stages": {"talker": int8, "decoder": {}}}, PIPELINE)
    with pytest.raises(ConfigError, match="device is 'cpu', dtype 'float32' or 'bfloat16'"):
        parse_deployment({"stages": {"talker": int8 | other, "decoder": {}}}, PIPELINE)
    with pytest.raises(ConfigError, match=r"talker.*'float16'"):
        plain.with_dtype("float16")


GRAPHS_PIPELINE = PipelineSpec(
    stages=(StageSpec("talker", StageKind.AR, "m:t", plain="m:p"), *PIPELINE.stages[1:]),
    edges=PIPELINE.edges,
)


@pytest.mark.parametrize(
    "other",
    [
        {"quantization": "int8"},
        {"kv_positions": 64},
        {"prefix_caching": True},
        {"tensor_parallel": 2},
    ],
    ids=lambda other: next(iter(other)),
)
def test_the_engine_without_vllm_refuses_what_only_vllm_does(other: dict[str, Any]) -> None:
    graphs: dict[str, Any] = {"engine": "graphs"}
    chosen = parse_deployment({"stages": {"talker": graphs, "decoder": {}}}, GRAPHS_PIPELINE)
    talker = chosen.stages["talker"]
    assert isinstance(talker, ArDeployment)
    assert talker.engine == "graphs"
    with pytest.raises(ConfigError, match=f"engine 'graphs': does without {next(iter(other))}"):
        parse_deployment({"stages": {"talker": graphs | other, "decoder": {}}}, GRAPHS_PIPELINE)


def test_the_engine_without_vllm_is_for_models_that_have_such_a_talker() -> None:
    raw: dict[str, Any] = {"stages": {"talker": {"engine": "graphs"}, "decoder": {}}}
    with pytest.raises(
        ConfigError, match="talker: engine 'graphs': this model runs on 'vllm' alone"
    ):
        parse_deployment(raw, PIPELINE)


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


def deploy_together(**changes: Mapping[str, Any]) -> Deployment:
    stages = {
        "talker": {"device": "cuda", "dtype": "bfloat16", **changes.get("talker", {})},
        "decoder": {"device": "cuda", "colocate": "talker", **changes.get("decoder", {})},
    }
    return parse_deployment({"stages": stages}, PIPELINE)


def test_a_codec_may_share_its_talkers_process() -> None:
    together = deploy_together()
    assert {name: together.sharing(name) for name in together.stages} == {
        "talker": ("talker", "decoder"),
        "decoder": ("talker", "decoder"),
    }
    apart = deploy_together(decoder={"colocate": None})
    assert {name: apart.sharing(name) for name in apart.stages} == {
        "talker": ("talker",),
        "decoder": ("decoder",),
    }


@pytest.mark.parametrize(
    ("changes", "message"),
    [
        ({"decoder": {"colocate": "decoder"}}, r"colocate 'decoder': valid: \['talker'\]"),
        ({"decoder": {"device": "cpu"}}, "one device, not 'cpu' and 'cuda'"),
        ({"talker": {"host": "10.0.0.8:8200"}}, "both stages run on this machine"),
        (
            {"talker": {"dtype": "float32"}, "decoder": {"precision": "tf32"}},
            "precision 'tf32' holds for all float32 products",
        ),
    ],
)
def test_stages_that_cannot_share_a_process_are_told_why(
    changes: dict[str, Any], message: str
) -> None:
    with pytest.raises(ConfigError, match=message):
        deploy_together(**changes)


@pytest.mark.parametrize(("ranks", "message"), [(0, "greater than or equal to 1"), (65, "64")])
def test_ranks_are_at_least_one(ranks: int, message: str) -> None:
    with pytest.raises(ConfigError, match=message):
        deploy_together(talker={"tensor_parallel": ranks})


def test_a_stage_may_stand_elsewhere_and_what_it_is_does_not_change() -> None:
    stages = {"talker": {"slots": 3, "host": "10.0.0.8:8200"}, "decoder": {}}
    spread = parse_deployment({"stages": stages}, PIPELINE)
    here = parse_deployment({"stages": {"talker": {"slots": 3}, "decoder": {}}}, PIPELINE)
    assert spread.hosts == {"talker": "10.0.0.8:8200"}
    assert here.hosts == {}
    assert spread.placed_here == here != spread


@pytest.mark.parametrize(
    ("raw", "message"),
    [
        ({"stages": {"talker": {}}}, r"valid: \['talker', 'decoder'\]"),
        ({"stages": {"talker": {}, "decoder": {}, "extra": {}}}, "extra"),
        ({"stages": {"talker": {"slotz": 3}, "decoder": {}}}, r"talker: slotz.*\n.*slots"),
        ({"stages": {"talker": {"slots": "3"}, "decoder": {}}}, r"slots: Input should be a valid"),
        ({"stages": {"talker": {"slots": 0}, "decoder": {}}}, "greater than or equal to 1"),
        ({"stages": {"talker": {"device": "tpu"}, "decoder": {}}}, "valid: 'cpu', 'cuda', or"),
        ({"stages": {"talker": {"host": "elsewhere"}, "decoder": {}}}, "HOST:PORT of a stage host"),
        ({"stages": {"talker": {"host": "there:0"}, "decoder": {}}}, "HOST:PORT of a stage host"),
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


AR, CODEC, FEED = StageKind.AR, StageKind.CODEC, StageKind.FEED_FORWARD
HEARD = ("b.pcm", CLIENT)


@pytest.mark.parametrize(
    ("stages", "edges", "message"),
    [
        ({"a": AR, "client": CODEC}, (), "must differ"),
        ({"a": AR, "b": CODEC}, (("a.codes", "c"), HEARD), "unknown stage 'c'"),
        ({"a": AR, "b": CODEC}, (("c.codes", "b"), HEARD), "unknown stage 'c'"),
        ({"a": AR, "b": CODEC}, (("client.codes", "b"), HEARD), "unknown stage 'client'"),
        ({"a": AR, "b": CODEC}, (("a.rows", "b"), HEARD), r"'a.rows'; ports there: \['codes'\]"),
        ({"a": AR, "b": CODEC}, (("a", "b"), HEARD), "starts at 'a'"),
        ({"b": CODEC, "a": AR}, (("a.codes", "b"), HEARD), "against the order"),
        ({"b": CODEC, "c": CODEC}, (("b.pcm", "c"), ("c.pcm", CLIENT)), "carries Pcm; 'c' takes"),
        ({"a": AR, "b": CODEC}, (("a.codes", "b"), ("a.codes", "b"), HEARD), "each edge once"),
        ({"a": AR, "b": CODEC}, (HEARD,), "no edge starts at stage 'a', ports .'codes'"),
        ({"b": CODEC, "c": FEED}, (HEARD,), "no edge starts at stage 'c'"),
        (
            {"b": CODEC, "c": FEED},
            (("b.pcm", "c"), HEARD),
            r"carries Pcm; 'c' takes \['Codes', 'Rows'\]",
        ),
        ({}, (), "an edge to 'client'"),
    ],
)
def test_impossible_pipelines_are_rejected(
    stages: dict[str, StageKind], edges: tuple[tuple[str, str], ...], message: str
) -> None:
    specs = tuple(StageSpec(name, kind, "m:f") for name, kind in stages.items())
    with pytest.raises(ConfigError, match=message):
        PipelineSpec(specs, tuple(EdgeSpec(*edge) for edge in edges))


def test_a_stage_declares_ports_where_its_kind_has_none() -> None:
    heard, told = EdgeSpec("c.rows", CLIENT), EdgeSpec("c.codes", CLIENT)
    encoder = StageSpec("c", FEED, "m:f", outputs={"rows": Rows, "codes": Codes})
    assert PipelineSpec((encoder,), (heard, told)).stage("c").ports == encoder.outputs
    with pytest.raises(ConfigError, match=r"no edge starts at stage 'c', ports \['codes'\]"):
        PipelineSpec((encoder,), (heard,))
    talker = StageSpec("a", AR, "m:f", outputs={"rows": Rows})
    assert talker.ports == {"codes": Codes, "rows": Rows}
    assert StageSpec("a", AR, "m:f", outputs={"latents": Rows}).ports == {"latents": Rows}
    for port, payload in (("rows", Codes), ("frames", Rows)):
        talker = StageSpec("a", AR, "m:f", outputs={port: payload})
        with pytest.raises(
            ConfigError, match=rf"declares ports \['{port}'\]; valid: \['rows', 'latents'\]"
        ):
            PipelineSpec((talker,), (EdgeSpec("a.codes", CLIENT),))


def test_a_request_takes_part_where_it_has_an_input_and_in_what_follows() -> None:
    def names(*inputs: str) -> list[str]:
        return [stage.name for stage in ENCODED.taking_part(inputs)]

    assert names("encoder", "talker") == ["encoder", "talker", "decoder"]
    assert names("talker") == ["talker", "decoder"]
    assert names() == []


def test_a_stage_that_would_hear_only_at_ports_that_are_left_out_takes_no_part() -> None:
    def part(*without: str) -> list[str]:
        return [stage.name for stage in SCRIBE.pipeline.taking_part({"denoiser"}, without)]

    assert part() == part("denoiser.codes") == ["denoiser", "decoder"]
    assert part("denoiser.latents") == part("decoder") == ["denoiser"]


def test_a_pipeline_without_a_stage_has_no_edges_at_it() -> None:
    assert ENCODED.without(["encoder"]) == PipelineSpec(ENCODED.stages[1:], ENCODED.edges[1:])
    with pytest.raises(ConfigError, match="no edge starts at stage 'talker'"):
        ENCODED.without(["decoder"])


def test_speech_needs_one_edge_of_sound() -> None:
    stages = (StageSpec("a", AR, "m:t"),)
    assert PIPELINE.sound == EdgeSpec("decoder.pcm", CLIENT)
    with pytest.raises(ConfigError, match="one edge of sound to 'client', not 0"):
        _ = PipelineSpec(stages, (EdgeSpec("a.codes", CLIENT),)).sound


def test_a_deployment_may_name_what_hears_and_answers() -> None:
    raw = {"stages": {"talker": {}, "decoder": {}}, "realtime": {"chat_url": "http://a/v1"}}
    assert parse_deployment(raw, PIPELINE).realtime.chat_url == "http://a/v1"
    assert parse_deployment({**raw, "realtime": {}}, PIPELINE).realtime.chat_url is None
    with pytest.raises(ConfigError, match=r"realtime\.chat: Extra inputs"):
        parse_deployment({**raw, "realtime": {"chat": "http://a/v1"}}, PIPELINE)
