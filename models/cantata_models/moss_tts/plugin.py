"""The plug-ins of both models for the server."""

from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.moss_tts.config import local, nano
from cantata_models.moss_tts.pipeline import LOCAL_PIPELINE, NANO_PIPELINE
from cantata_models.moss_tts.request_builder import load_local_builder, load_nano_builder

# Only the doctor and tests call these. Their imports are local so that a server need not load torch
# here.


def check_local_numerics() -> NumericsReport:
    """Check MOSS-TTS-Local's float32 products."""
    from cantata_models.moss_tts import numerics

    return numerics.check_local()


def check_nano_numerics() -> NumericsReport:
    """Check MOSS-TTS-Nano's float32 products."""
    from cantata_models.moss_tts import numerics

    return numerics.check_nano()


def write_random_local(folder: Path) -> None:
    """Write a tiny checkpoint of MOSS-TTS-Local."""
    from cantata_models.moss_tts.random_checkpoint.write import write_tiny_local

    write_tiny_local(folder, seed=1)


def write_random_nano(folder: Path) -> None:
    """Write a tiny checkpoint of MOSS-TTS-Nano."""
    from cantata_models.moss_tts.random_checkpoint.write import write_tiny_nano

    write_tiny_nano(folder, seed=1)


LOCAL = ModelPlugin(
    name="moss-tts-local",
    model_types=(local.MODEL_TYPE,),
    pipeline=LOCAL_PIPELINE,
    deployment=Path(__file__).with_name("deploy_local.yaml"),
    load_builder=load_local_builder,
    check_numerics=check_local_numerics,
    write_random_checkpoint=write_random_local,
)
NANO = ModelPlugin(
    name="moss-tts-nano",
    model_types=(nano.MODEL_TYPE,),
    pipeline=NANO_PIPELINE,
    deployment=Path(__file__).with_name("deploy_nano.yaml"),
    load_builder=load_nano_builder,
    check_numerics=check_nano_numerics,
    write_random_checkpoint=write_random_nano,
)
