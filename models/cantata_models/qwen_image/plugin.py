"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.config import INDEX, Family, read_family
from cantata_layers.qwen_image.stages.pipeline import PIPELINE, REFERENCES_STAGE


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the encoder of references, for a checkpoint that takes none."""
    family = read_family(read_json(checkpoint / INDEX))
    return frozenset() if family.takes_pictures else frozenset((REFERENCES_STAGE,))


PLUGIN = ModelPlugin(
    name="qwen-image",
    model_types=tuple(family.value for family in Family),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_image_builder=Factory("cantata_layers.qwen_image.stages.builder:PictureBuilder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_layers.qwen_image.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen_image.random_checkpoint.write:write_tiny"),
)
