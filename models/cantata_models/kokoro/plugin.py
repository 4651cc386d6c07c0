"""Kokoro's plug-in for the server."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from cantata.contract.data.chunks import Pcm
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin

if TYPE_CHECKING:
    from cantata_models.kokoro.request_builder import KokoroRequestBuilder

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


def load_builder(checkpoint: Path) -> KokoroRequestBuilder:
    """The request builder of a checkpoint folder. Every command imports this module, so the text
    front end's package, an extra, is imported only here."""
    from cantata_models.kokoro.request_builder import load_builder

    return load_builder(checkpoint)


def write_random_checkpoint(folder: Path) -> None:
    """Write a small checkpoint of random weights."""
    from cantata_models.kokoro.random_checkpoint import write_checkpoint

    write_checkpoint(folder)


PLUGIN = ModelPlugin(
    name="kokoro",
    model_types=("kokoro",),
    config_keys=frozenset({"istftnet", "plbert", "vocab"}),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    write_random_checkpoint=write_random_checkpoint,
)
