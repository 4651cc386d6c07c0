"""Fish Speech: a talker generates frames of 10 codes, and a codec decodes them to 44.1 kHz audio.

Recordings of the speakers to follow are encoded to frames first. S2's frames go to the client, too:
what it says next stands behind them.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Codes
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import COUNTS, TYPICAL_ROWS, Products, check_products
from cantata_models.fish_speech.config import FishLayout

ENCODER, TALKER = "encoder", "talker"
S2_CODES = f"{TALKER}.codes"


def _build_pipeline(talker: str, *more: EdgeSpec) -> PipelineSpec:
    """The pipeline around a talker's class."""
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                "cantata_models.fish_speech.encoder:RecordingFrames",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"cantata_models.fish_speech.talker:{talker}"),
            StageSpec("codec", StageKind.CODEC, "cantata_models.fish_speech.codec:load_decoder"),
        ),
        edges=(
            EdgeSpec("encoder.frames", TALKER),
            EdgeSpec("talker.codes", "codec"),
            EdgeSpec("codec.pcm", CLIENT),
            *more,
        ),
    )


S2_PIPELINE = _build_pipeline("S2Talker", EdgeSpec(S2_CODES, CLIENT))
S1_PIPELINE = _build_pipeline("S1Talker")


TALKER_SHAPES = ((4096, 2560), (2560, 9728), (9728, 2560), (2560, 4096), (1024, 4096))
"""(inputs, outputs) of the fast stacks and of S2's scores."""
FRAME_SHAPES = ((1024, 3072), (1024, 1024), (1024, 4096), (4096, 1024), (7168, 1536))
"""The codec's products with one row for each position of a frame."""
WAVE_SHAPES = ((3072, 6144), (5376, 768), (2688, 384))
LAST_WAVE_SHAPES = ((672, 96), (672, 1))
"""The products of the codec's last stages, with up to 2,048 rows for each frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products((*FRAME_SHAPES, *WAVE_SHAPES), codec),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 512, 2048)),
    )


S2 = ModelPlugin(
    name="fish-speech-s2",
    model_types=(FishLayout.S2,),
    pipeline=S2_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s2.yaml"),
    load_builder=Factory("cantata_models.fish_speech.request_builder:load_s2_builder"),
    check_numerics=Factory("cantata_models.fish_speech.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.fish_speech.random_checkpoint:write_tiny_s2"),
)
S1 = ModelPlugin(
    name="openaudio-s1",
    model_types=(FishLayout.S1,),
    pipeline=S1_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s1.yaml"),
    load_builder=Factory("cantata_models.fish_speech.request_builder:load_s1_builder"),
    check_numerics=Factory("cantata_models.fish_speech.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.fish_speech.random_checkpoint:write_tiny_s1"),
)
