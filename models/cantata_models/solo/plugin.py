"""solo's plug-in for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.solo.pipeline import PIPELINE

_FOLDER = Path(__file__).parent


PLUGIN = ModelPlugin(
    name="solo",
    model_types=("cantata_solo",),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_builder=Factory("cantata_models.solo.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.solo.numerics:check_numerics"),
    embedded_checkpoint=_FOLDER / "weights",
)
