"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen3_omni.config.checkpoint import MODEL_TYPE, load_config
from cantata_models.qwen3_omni.pipeline import PIPELINE, SPEAKERS


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the stages that speak, for a checkpoint that only writes."""
    return SPEAKERS if load_config(checkpoint).speech is None else frozenset()


PLUGIN = ModelPlugin(
    name="qwen3-omni",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=Factory("cantata_models.qwen3_omni.chat_builder:Qwen3OmniChatBuilder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen3_omni.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen3_omni.random_checkpoint.write:write_tiny"),
)
