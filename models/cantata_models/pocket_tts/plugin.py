"""Pocket TTS: a talker makes latents, and a codec decodes them to 24 kHz sound.

If a request has a recording, an encoder makes the talker's rows of it first.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import COUNTS, TYPICAL_ROWS, Products, check_products

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.pocket_tts.encoder:VoiceEncoder",
            outputs={"voice": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            "cantata_models.pocket_tts.talker:PocketTalker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, "cantata_models.pocket_tts.codec:MimiDecoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.voice", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)


HEAD_SHAPES = ((32, 1024), (1024, 512), (32, 512), (512, 512), (512, 1536), (512, 32), (1024, 1))
"""(inputs, outputs) of the products around the language model and in the head, as published."""
CODEC_SHAPES = ((32, 512), (512, 1536), (512, 2048), (2048, 512), (3584, 512), (1024, 1536))
"""The codec's products with a few rows per frame."""
LAST_SHAPES = ((512, 256), (192, 32), (32, 64), (192, 1))
"""Those of its last stage, with 480 or 1,920 rows per frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(HEAD_SHAPES),
        Products(CODEC_SHAPES, codec, (*COUNTS, 128)),
        Products(LAST_SHAPES, codec, (*COUNTS, 480, 1920)),
    )


PLUGIN = ModelPlugin(
    name="pocket_tts",
    model_types=(),
    is_checkpoint=Factory("cantata_models.pocket_tts.config:is_checkpoint"),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.pocket_tts.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.pocket_tts.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.pocket_tts.random_checkpoint:write_tiny"),
)
