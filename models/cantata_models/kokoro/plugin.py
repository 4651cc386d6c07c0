"""Kokoro's plug-in for the server."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Pcm
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "voice",
            StageKind.FEED_FORWARD,
            "cantata_models.kokoro.voice:load_voice",
            outputs={"sound": Pcm},
        ),
    ),
    edges=(EdgeSpec("voice.sound", CLIENT),),
)


PLUGIN = ModelPlugin(
    name="kokoro",
    model_types=("kokoro",),
    config_keys=frozenset({"istftnet", "plbert", "vocab"}),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.kokoro.request_builder:load_builder"),
    write_random_checkpoint=Factory("cantata_models.kokoro.random_checkpoint:write_tiny"),
)
