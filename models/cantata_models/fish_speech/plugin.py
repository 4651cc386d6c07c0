"""The plug-ins of both layouts for the server."""

from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.fish_speech.config import Layout
from cantata_models.fish_speech.pipeline import S1_PIPELINE, S2_PIPELINE
from cantata_models.fish_speech.request_builder import load_s1_builder
from cantata_models.fish_speech.s2_request_builder import load_s2_builder

# Only the doctor and tests call these. Their imports are local so that a server need not load torch
# here.


def check_numerics() -> NumericsReport:
    """Check the talkers' and the codec's float32 products."""
    from cantata_models.fish_speech import numerics

    return numerics.check_numerics()


def write_random_s2(folder: Path) -> None:
    """Write a tiny checkpoint of S2."""
    from cantata_models.fish_speech.random_checkpoint.shapes import TINY_S2
    from cantata_models.fish_speech.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY_S2, seed=1)


def write_random_s1(folder: Path) -> None:
    """Write a tiny checkpoint of S1."""
    from cantata_models.fish_speech.random_checkpoint.shapes import TINY_S1
    from cantata_models.fish_speech.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY_S1, seed=1)


S2 = ModelPlugin(
    name="fish-speech-s2",
    model_types=(Layout.S2,),
    pipeline=S2_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s2.yaml"),
    load_builder=load_s2_builder,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_s2,
)
S1 = ModelPlugin(
    name="openaudio-s1",
    model_types=(Layout.S1,),
    pipeline=S1_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s1.yaml"),
    load_builder=load_s1_builder,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_s1,
)
