"""Qwen3-TTS: a talker generates frames of 16 codes, and a codec decodes them to 24 kHz audio.

A Base checkpoint follows a recording. Its encoder makes the speaker's vector and, if the talker is
to continue the recording, its frames.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Codes, Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import COUNTS, TYPICAL_ROWS, Products, check_products
from cantata_models.qwen3_tts.config import MODEL_TYPE, ModelKind, load_config

ENCODER, TALKER = "encoder", "talker"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.qwen3_tts.encoder:RecordingEncoders",
            outputs={"speaker": Rows, "frames": Codes},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            "cantata_models.qwen3_tts.talker:Qwen3Talker",
            plain="cantata_models.qwen3_tts.plain_talker:load_plain_talker",
        ),
        StageSpec("codec", StageKind.CODEC, "cantata_models.qwen3_tts.codec:Qwen3TtsDecoder"),
    ),
    edges=(
        EdgeSpec("encoder.speaker", TALKER),
        EdgeSpec("encoder.frames", TALKER),
        EdgeSpec("talker.codes", "codec"),
        EdgeSpec("codec.pcm", CLIENT),
    ),
)


def unused_stages(checkpoint: Path) -> frozenset[str]:
    """Return the stages that a checkpoint does without.

    Raises:
        ConfigError: the folder holds no such checkpoint.
    """
    return frozenset() if load_config(checkpoint).kind is ModelKind.BASE else frozenset({ENCODER})


TALKER_SHAPES = ((2048, 1024), (1024, 4096), (3072, 1024), (1024, 6144))
"""(inputs, outputs) in the talker of the published 0.6B model."""
FRAME_SHAPES = ((1536, 1024), (1024, 512), (512, 1024), (1024, 4096), (4096, 1024))
"""The codec's products with one row per position of a frame."""
WAVE_SHAPES = ((5376, 768), (2688, 384))
LAST_WAVE_SHAPES = ((672, 96), (672, 1))
"""The products of the codec's last stages, with up to 1,920 rows per frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products((*FRAME_SHAPES, *WAVE_SHAPES), codec),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 320, 1920)),
    )


PLUGIN = ModelPlugin(
    name="qwen3-tts",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.qwen3_tts.request_builder:load_builder"),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen3_tts.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen3_tts.random_checkpoint:write_tiny"),
)
