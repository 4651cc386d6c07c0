"""sketch's plug-in for the server. Its checkpoint has Qwen-Image's published layout, only small."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.qwen_image.stages.pipeline import PIPELINE, REFERENCES_STAGE

WEIGHTS_FOLDER = Path(__file__).with_name("weights")
"""The weights shipped with the package, float16."""

PLUGIN = ModelPlugin(
    name="sketch",
    model_types=(),
    pipeline=PIPELINE.without((REFERENCES_STAGE,)),
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_image_builder=Factory("cantata_models.sketch.request_builder:load_builder"),
    check_numerics=Factory("cantata_layers.qwen_image.numerics:check_numerics"),
    embedded_checkpoint=WEIGHTS_FOLDER,
)
