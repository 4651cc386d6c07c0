"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata.contract.model.recognizer import TranscriptionBuilder
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER, MODEL_TYPE
from cantata_models.qwen3_asr.pipeline import ALIGNER, PIPELINE

# The imports below are local so that listing the plug-in loads neither torch nor transformers.


def load_transcription_builder(checkpoint: Path) -> TranscriptionBuilder:
    """Return the builder of a checkpoint folder."""
    from cantata_models.qwen3_asr.transcription_builder import Qwen3AsrBuilder

    return Qwen3AsrBuilder(checkpoint)


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the aligner, for a checkpoint that has none."""
    return frozenset() if (checkpoint / ALIGNER_FOLDER).is_dir() else frozenset((ALIGNER,))


def check_numerics() -> NumericsReport:
    """Check the float32 products."""
    from cantata_models.qwen3_asr import numerics

    return numerics.check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint."""
    from cantata_models.qwen3_asr.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, seed=1)


PLUGIN = ModelPlugin(
    name="qwen3-asr",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_transcription_builder=load_transcription_builder,
    unused_stages=unused_stages,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
