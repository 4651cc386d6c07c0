"""The Qwen3-TTS plug-in for the server."""

from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen3_tts.config import MODEL_TYPE
from cantata_models.qwen3_tts.pipeline import PIPELINE, unused_stages
from cantata_models.qwen3_tts.request_builder import load_builder


def check_numerics() -> NumericsReport:
    """Check the talker's and the codec's float32 products."""
    # Only the doctor calls this. The import is local so that a server need not load torch here.
    from cantata_models.qwen3_tts import numerics

    return numerics.check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint with stock voices."""
    # Only tests call this. The import is local so that a server need not load torch here.
    from cantata_models.qwen3_tts.random_checkpoint.configs import TINY_SMALL
    from cantata_models.qwen3_tts.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY_SMALL, "custom_voice", seed=1)


PLUGIN = ModelPlugin(
    name="qwen3-tts",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    unused_stages=unused_stages,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
