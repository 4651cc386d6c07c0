"""The plug-in for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.bagel.pipeline import PIPELINE

PLUGIN = ModelPlugin(
    name="bagel",
    model_types=("bagel",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=Factory("cantata_models.bagel.chat_builder:BagelChatBuilder"),
    load_image_builder=Factory("cantata_models.bagel.builder:BagelPictureBuilder"),
    check_numerics=Factory("cantata_models.bagel.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.bagel.random_checkpoint.write:write_tiny"),
)
