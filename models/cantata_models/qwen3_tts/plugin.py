"""Qwen3-TTS as the server finds it."""

from pathlib import Path

from cantata.contract.plugin import ModelPlugin
from cantata_models.qwen3_tts.config import MODEL_TYPE
from cantata_models.qwen3_tts.pipeline import PIPELINE
from cantata_models.qwen3_tts.request_builder import load_builder


def write_random_checkpoint(folder: Path) -> None:
    """A tiny checkpoint with stock voices."""
    # Tests alone come here: a server that finds this plug-in loads no torch for it.
    from cantata_models.qwen3_tts.random_checkpoint.configs import TINY_SMALL
    from cantata_models.qwen3_tts.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY_SMALL, "custom_voice", seed=1)


PLUGIN = ModelPlugin(
    name="qwen3-tts",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=load_builder,
    write_random_checkpoint=write_random_checkpoint,
)
