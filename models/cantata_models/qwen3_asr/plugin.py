"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER, MODEL_TYPE
from cantata_models.qwen3_asr.pipeline import ALIGNER, PIPELINE


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the aligner, for a checkpoint that has none."""
    return frozenset() if (checkpoint / ALIGNER_FOLDER).is_dir() else frozenset((ALIGNER,))


PLUGIN = ModelPlugin(
    name="qwen3-asr",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_transcription_builder=Factory(
        "cantata_models.qwen3_asr.transcription_builder:Qwen3AsrBuilder"
    ),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen3_asr.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen3_asr.random_checkpoint.write:write_tiny"),
)
