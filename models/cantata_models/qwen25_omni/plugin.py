"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen25_omni.config import MODEL_TYPE
from cantata_models.qwen25_omni.pipeline import PIPELINE, SPEAKING
from cantata_models.qwen25_omni.thinker_config import speaks


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the stages that speak, for a checkpoint that only writes."""
    return frozenset() if speaks(checkpoint) else SPEAKING


PLUGIN = ModelPlugin(
    name="qwen2.5-omni",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=Factory("cantata_models.qwen25_omni.chat_builder:Qwen25OmniChatBuilder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen25_omni.numerics:check_numerics"),
    write_random_checkpoint=Factory(
        "cantata_models.qwen25_omni.random_checkpoint.write:write_tiny"
    ),
)
