"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.picture import ImageBuilder
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.config.pipeline import INDEX, Family, read_family
from cantata_layers.qwen_image.stages.pipeline import PIPELINE
from cantata_layers.qwen_image.stages.ports import REFERENCES_STAGE

# The imports below are local so that listing the plug-in loads neither torch nor transformers.


def load_image_builder(checkpoint: Path) -> ImageBuilder:
    """Return the builder of a checkpoint folder."""
    from cantata_layers.qwen_image.stages.builder import PictureBuilder

    return PictureBuilder(checkpoint)


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the encoder of references, for a checkpoint that takes none."""
    family = read_family(read_json(checkpoint / INDEX))
    return frozenset() if family.takes_pictures else frozenset((REFERENCES_STAGE,))


def check_numerics() -> NumericsReport:
    """Check the float32 products."""
    from cantata_layers.qwen_image.numerics import check_numerics

    return check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint that draws."""
    from cantata_models.qwen_image.random_checkpoint.shapes import VARIANTS
    from cantata_models.qwen_image.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, VARIANTS["image"], seed=1)


PLUGIN = ModelPlugin(
    name="qwen-image",
    model_types=tuple(family.value for family in Family),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_image_builder=load_image_builder,
    unused_stages=unused_stages,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
