"""The VoxCPM2 plug-in for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.voxcpm2.config import ARCHITECTURE
from cantata_models.voxcpm2.pipeline import PIPELINE

PLUGIN = ModelPlugin(
    name="voxcpm2",
    model_types=(ARCHITECTURE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.voxcpm2.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.voxcpm2.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.voxcpm2.random_checkpoint.write:write_tiny"),
)
