"""solo's plug-in for the server."""

from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.solo.pipeline import PIPELINE
from cantata_models.solo.request_builder import load_builder

_FOLDER = Path(__file__).parent


def check_numerics() -> NumericsReport:
    """Checks every matrix product in a request."""
    # Only the doctor calls this. The import is local so that a server need not load torch here.
    from cantata_models.solo import numerics

    return numerics.check_numerics()


PLUGIN = ModelPlugin(
    name="solo",
    model_types=("cantata_solo",),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_builder=load_builder,
    check_numerics=check_numerics,
    is_default=True,
    embedded_checkpoint=_FOLDER / "weights",
)
