"""The plug-in for the server."""

from pathlib import Path

from cantata.contract.model.conversation import ChatBuilder
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.picture import ImageBuilder
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.bagel.pipeline import PIPELINE

# The imports below are local so that listing the plug-in loads neither torch nor a tokenizer.


def load_image_builder(checkpoint: Path) -> ImageBuilder:
    """Return the builder of a checkpoint folder."""
    from cantata_models.bagel.builder import PictureBuilder

    return PictureBuilder(checkpoint)


def load_chat_builder(checkpoint: Path) -> ChatBuilder:
    """Return the builder of conversations of a checkpoint folder."""
    from cantata_models.bagel.chat_builder import ChatBuilder

    return ChatBuilder(checkpoint)


def check_numerics() -> NumericsReport:
    """Check the float32 products."""
    from cantata_models.bagel.numerics import check_numerics

    return check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint."""
    from cantata_models.bagel.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, seed=1)


PLUGIN = ModelPlugin(
    name="bagel",
    model_types=("bagel",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=load_chat_builder,
    load_image_builder=load_image_builder,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
