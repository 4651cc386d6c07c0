"""solo as the server finds it."""

from pathlib import Path

from cantata.contract.plugin import ModelPlugin
from cantata_models.solo.pipeline import PIPELINE
from cantata_models.solo.request_builder import load_builder

_FOLDER = Path(__file__).parent

PLUGIN = ModelPlugin(
    name="solo",
    model_types=("cantata_solo",),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_builder=load_builder,
    embedded_checkpoint=_FOLDER / "weights",
)
