"""Qwen2.5-Omni: a thinker answers what it reads, hears and sees; a talker speaks the answer while
it is written, and token2wav decodes it to 24 kHz.

If a conversation has media, an encoder makes their rows first.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import Products, check_products
from cantata_models.qwen25_omni.config import MODEL_TYPE, speaks

ENCODER, THINKER, TALKER, TOKEN2WAV = "encoder", "thinker", "talker", "token2wav"
SPEAKING = frozenset({TALKER, TOKEN2WAV})
"""Stages that only a spoken answer needs."""
PACKAGE = "cantata_models.qwen25_omni"

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
            f"{PACKAGE}.thinker:Qwen25OmniThinker",
            outputs={"rows": Rows},
        ),
        StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker:Qwen25OmniTalker"),
        StageSpec(TOKEN2WAV, StageKind.CODEC, f"{PACKAGE}.token2wav:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
        EdgeSpec(f"{THINKER}.rows", TALKER),
        EdgeSpec(f"{TALKER}.codes", TOKEN2WAV),
        EdgeSpec(f"{TOKEN2WAV}.pcm", CLIENT),
    ),
)


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the stages that speak, for a checkpoint that only writes."""
    return frozenset() if speaks(checkpoint) else SPEAKING


PRODUCT_SHAPES = ((3584, 896), (896, 8448))
"""(inputs, outputs) of the published talker's products outside vLLM's layers. The thinker's
head has the first's inputs, and more outputs than are worth a check."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(PRODUCT_SHAPES))


PLUGIN = ModelPlugin(
    name="qwen2.5-omni",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=Factory("cantata_models.qwen25_omni.chat_builder:Qwen25OmniChatBuilder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen25_omni.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen25_omni.random_checkpoint:write_tiny"),
)
