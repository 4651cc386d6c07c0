"""VoxCPM2: a talker makes patches of latents, and a codec decodes them to 48 kHz sound.

If a request has a recording, an encoder makes its latents first.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import COUNTS, TYPICAL_ROWS, Products, check_products
from cantata_models.voxcpm2.config import ARCHITECTURE

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.voxcpm2.encoder:load_encoder",
            outputs={"latents": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            "cantata_models.voxcpm2.talker:VoxCpm2Talker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, "cantata_models.voxcpm2.codec:SoundDecoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.latents", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)


TALKER_SHAPES = ((2048, 512), (512, 2048), (2048, 1024), (4096, 2048), (64, 1024), (1024, 64))
"""(inputs, outputs) between the language models and into the solver of the published model."""
LOCAL_SHAPES = ((1024, 2560), (2048, 1024), (1024, 8192), (4096, 1024))
"""The products within a patch."""
CODEC_SHAPES = ((64, 2048), (1024, 1024), (2048, 3072))
"""The codec's products with a row or a few per latent."""
MAX_SHAPE = (4096, 8192)
"""The codec's first stage."""
FEW_COUNTS = (1, 2, 4, 8, 16, 33)
LAST_WAVE_SHAPES = ((32, 32), (224, 1))
"""The products of the codec's last stage, with 7,680 rows per patch."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products(LOCAL_SHAPES, counts=(*COUNTS, 10, 22, 88)),
        Products(CODEC_SHAPES, codec),
        Products((MAX_SHAPE,), codec, FEW_COUNTS),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 320, 1920)),
    )


PLUGIN = ModelPlugin(
    name="voxcpm2",
    model_types=(ARCHITECTURE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.voxcpm2.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.voxcpm2.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.voxcpm2.random_checkpoint:write_tiny"),
)
