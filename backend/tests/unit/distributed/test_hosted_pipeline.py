"""What a stage host checks before it runs a server's stages, and which sockets it makes."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from cantata.config import parse_deployment
from cantata.contract.data.errors import ConfigError
from cantata.distributed.identity import hash_files, hash_identity, versions
from cantata.distributed.stages.host.pipeline import HostedPipeline, StageLogs, plan_hosted
from cantata.distributed.stages.messages import EdgeName, PipelineCommand
from stage_hosts import placed
from tiny_talker.latent_plugin import PLUGIN

DEPLOYMENT = parse_deployment(
    {"stages": {"thinker": {}, "talker": {}, "decoder": {}}}, PLUGIN.pipeline
)
THERE = {"thinker": "10.0.0.8:8200", "talker": "10.0.0.8:8200"}


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    (tmp_path / "weights").write_bytes(bytes(1000))
    return tmp_path


@pytest.fixture
def command(folder: Path) -> PipelineCommand:
    return PipelineCommand(
        model=PLUGIN.name,
        checkpoint=str(folder),
        files=hash_files(folder),
        versions=versions(),
        deployment=placed(DEPLOYMENT, THERE).model_dump(mode="json", exclude={"cluster"}),
        here=("thinker", "talker"),
    )


def planned(command: PipelineCommand) -> HostedPipeline:
    return plan_hosted(command, {PLUGIN.name: PLUGIN}, StageLogs())


async def test_edges_inside_the_host_are_sockets_and_only_the_others_cross(
    command: PipelineCommand,
) -> None:
    pipeline = planned(command)
    try:
        thinker, talker = pipeline.launch("thinker"), pipeline.launch("talker")
        assert len(talker.inputs) == len(thinker.outputs["rows"]) == 1
        assert thinker.client_ports == ("codes",)
        assert pipeline.get_exit(EdgeName("talker.latents", "decoder"))
        for name in (EdgeName("thinker.rows", "talker"), EdgeName("talker.latents", "nobody")):
            with pytest.raises(ConfigError, match="no edge"):
                pipeline.get_exit(name)
            with pytest.raises(ConfigError, match="no edge"):
                pipeline.inlet(name)
        with pytest.raises(ConfigError, match=r"runs the stages \['thinker', 'talker'\]"):
            pipeline.launch("decoder")
    finally:
        await pipeline.close()


async def test_a_chunk_for_a_stage_here_has_a_way_in(command: PipelineCommand) -> None:
    pipeline = planned(replace(command, here=("decoder",)))
    try:
        assert pipeline.inlet(EdgeName("talker.latents", "decoder")).parked == 0
    finally:
        await pipeline.close()


@pytest.mark.parametrize(
    ("change", "why"),
    [
        ({"model": "another"}, r"'another' is not installed; installed: \['tiny-latent'\]"),
        ({"checkpoint": "/nowhere/at/all"}, "/nowhere/at/all is no folder"),
        ({"checkpoint": None}, "no embedded weights"),
        ({"files": "other"}, "are not the server's"),
        ({"versions": {"cantata": "9.9", "torch": "9.9"}}, "and the server cantata 9.9, torch 9.9"),
        ({"here": ("singer",)}, "no stages"),
        ({"here": ()}, "no stages"),
        ({"deployment": {"stages": {"talker": {}}}}, r"valid: \['thinker', 'talker', 'decoder'\]"),
    ],
)
def test_what_would_not_make_the_same_samples_is_refused(
    command: PipelineCommand, change: dict[str, Any], why: str
) -> None:
    with pytest.raises(ConfigError, match=why):
        planned(replace(command, **change))


def test_one_changed_byte_is_another_model(command: PipelineCommand, folder: Path) -> None:
    (folder / "weights").write_bytes(bytes(999) + b"x")
    with pytest.raises(ConfigError, match="are not the server's"):
        planned(command)


def test_where_stages_stand_does_not_make_another_model(folder: Path) -> None:
    assert hash_identity(folder, DEPLOYMENT) == hash_identity(folder, placed(DEPLOYMENT, THERE))
