"""The Qwen3-TTS plug-in for the server."""

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen3_tts.config import MODEL_TYPE
from cantata_models.qwen3_tts.pipeline import PIPELINE, unused_stages

PLUGIN = ModelPlugin(
    name="qwen3-tts",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.qwen3_tts.request_builder:load_builder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen3_tts.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen3_tts.random_checkpoint.write:write_tiny"),
)
