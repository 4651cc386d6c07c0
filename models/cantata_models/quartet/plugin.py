"""quartet's plug-in for the server."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Pcm
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin

_FOLDER = Path(__file__).parent

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "voice",
            StageKind.FEED_FORWARD,
            "cantata_models.quartet.voice:load_voices",
            outputs={"sound": Pcm},
        ),
    ),
    edges=(EdgeSpec("voice.sound", CLIENT),),
)


PLUGIN = ModelPlugin(
    name="quartet",
    model_types=("cantata_quartet",),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_builder=Factory("cantata_models.quartet.request_builder:load_builder"),
    is_default=True,
    embedded_checkpoint=_FOLDER / "weights",
)
