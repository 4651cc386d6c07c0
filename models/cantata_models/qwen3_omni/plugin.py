"""The topology: a thinker answers what it reads, hears and sees; a talker speaks the answer while
it is written, and code2wav decodes it to 24 kHz.

If a conversation has media, an encoder makes their rows first.
"""

from collections.abc import Collection
from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.qwen3_omni.config import MODEL_TYPE, load_config

ENCODER, THINKER, TALKER, CODE2WAV = "encoder", "thinker", "talker", "code2wav"
SPEAKERS = frozenset({TALKER, CODE2WAV})
"""Stages that only a spoken answer needs."""
PACKAGE = "cantata_models.qwen3_omni"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.encoder:load_encoder",
            outputs={"rows": Rows},
        ),
        StageSpec(
            THINKER,
            StageKind.AR,
            f"{PACKAGE}.thinker:OmniThinker",
            outputs={"rows": Rows},
        ),
        StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker:OmniTalker"),
        StageSpec(CODE2WAV, StageKind.CODEC, f"{PACKAGE}.code2wav:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
        EdgeSpec(f"{THINKER}.codes", TALKER),
        EdgeSpec(f"{THINKER}.rows", TALKER),
        EdgeSpec(f"{TALKER}.codes", CODE2WAV),
        EdgeSpec(f"{CODE2WAV}.pcm", CLIENT),
    ),
)


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
    write_random_checkpoint=Factory("cantata_models.qwen3_omni.random_checkpoint:write_tiny"),
)
