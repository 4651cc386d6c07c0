"""hibari's plug-in for the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cantata.contract.data.chunks import Pcm
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.hibari.voices import find_package_files

if TYPE_CHECKING:
    from cantata_models.hibari.request_builder import HibariRequestBuilder

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


def load_builder(checkpoint: Path) -> HibariRequestBuilder:
    """The request builder of a folder with voices. Every command imports this module, so the
    package's text front end, an extra, is imported only here."""
    from cantata_models.hibari.request_builder import load_builder

    return load_builder(checkpoint)


PLUGIN = ModelPlugin(
    name="hibari",
    model_types=("hibari",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    embedded_checkpoint=find_package_files(),
)
