"""The plug-in for the server."""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.model.conversation import ChatBuilder
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen25_omni.config import MODEL_TYPE
from cantata_models.qwen25_omni.pipeline import PIPELINE, SPEAKING
from cantata_models.qwen25_omni.thinker_config import speaks

# The imports below are local so that listing the plug-in loads neither torch nor transformers.


def load_chat_builder(checkpoint: Path) -> ChatBuilder:
    """Return the builder of a checkpoint folder."""
    from cantata_models.qwen25_omni.chat_builder import OmniChatBuilder

    return OmniChatBuilder(checkpoint)


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the stages that speak, for a checkpoint that only writes."""
    return frozenset() if speaks(checkpoint) else SPEAKING


def check_numerics() -> NumericsReport:
    """Check the float32 products."""
    from cantata_models.qwen25_omni import numerics

    return numerics.check_numerics()


def write_random_checkpoint(folder: Path) -> None:
    """Write a tiny checkpoint that speaks."""
    from cantata_models.qwen25_omni.random_checkpoint.configs import TINY
    from cantata_models.qwen25_omni.random_checkpoint.write import write_checkpoint

    write_checkpoint(folder, TINY, seed=1)


PLUGIN = ModelPlugin(
    name="qwen2.5-omni",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=load_chat_builder,
    unused_stages=unused_stages,
    check_numerics=check_numerics,
    write_random_checkpoint=write_random_checkpoint,
)
