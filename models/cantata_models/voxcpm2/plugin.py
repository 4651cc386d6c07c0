"""The VoxCPM2 plug-in for the server."""

from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.voxcpm2.config import ARCHITECTURE
from cantata_models.voxcpm2.pipeline import PIPELINE
from cantata_models.voxcpm2.request_builder import load_builder


def check_numerics() -> NumericsReport:
    """Check the talker's and the codec's float32 products."""
    # Only the doctor calls this. The import is local so that a server need not load torch here.
    from cantata_models.voxcpm2 import numerics

    return numerics.check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint."""
    # Only tests call this. The import is local so that a server need not load torch here.
    from cantata_models.voxcpm2.random_checkpoint.configs import TINY
    from cantata_models.voxcpm2.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY, seed=3)


PLUGIN = ModelPlugin(
    name="voxcpm2",
    model_types=(ARCHITECTURE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
