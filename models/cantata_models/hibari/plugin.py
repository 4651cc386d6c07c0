"""hibari's plug-in for the server."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Pcm
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.hibari.voices import find_package_files

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "voice",
            StageKind.FEED_FORWARD,
            "cantata_models.hibari.voice:load_voices",
            outputs={"sound": Pcm},
        ),
    ),
    edges=(EdgeSpec("voice.sound", CLIENT),),
)


PLUGIN = ModelPlugin(
    name="hibari",
    model_types=("hibari",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.hibari.request_builder:load_builder"),
    embedded_checkpoint=find_package_files(),
)
