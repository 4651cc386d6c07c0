"""The plug-ins of both models: a talker makes frames, and a codec decodes them to 48 kHz stereo.

If a request has a recording, an encoder makes its frames first.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Codes
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import COUNTS, TYPICAL_ROWS, Products, check_products
from cantata_models.moss_tts.config import LOCAL_MODEL_TYPE, NANO_MODEL_TYPE

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PACKAGE = "cantata_models.moss_tts"


def _build_pipeline(encoder: str, talker: str, decoder: str) -> PipelineSpec:
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                f"{PACKAGE}.encoder:{encoder}",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker:{talker}"),
            StageSpec(CODEC, StageKind.CODEC, f"{PACKAGE}.codec:{decoder}"),
        ),
        edges=(
            EdgeSpec(f"{ENCODER}.frames", TALKER),
            EdgeSpec(f"{TALKER}.codes", CODEC),
            EdgeSpec(f"{CODEC}.pcm", CLIENT),
        ),
    )


LOCAL_PIPELINE = _build_pipeline("load_local_encoder", "LocalTalker", "load_local_decoder")
NANO_PIPELINE = _build_pipeline("load_nano_encoder", "NanoTalker", "load_nano_decoder")


Shapes = tuple[tuple[int, int], ...]
CODES = 1024
MANY_ROWS = (*COUNTS, 160, 512)
"""A chunk of eight frames has up to 512 positions."""


def check_local() -> NumericsReport:
    """Check products of MOSS-TTS-Local's published shapes."""
    return check_products(
        Products((*_list_block_shapes(2560, 9728), (2560, CODES), (2560, 2))),
        Products(
            (*_list_block_shapes(1280, 5120), *_list_block_shapes(768, 3072)),
            (TYPICAL_ROWS,),
            MANY_ROWS,
        ),
    )


def check_nano() -> NumericsReport:
    """Check products of MOSS-TTS-Nano's published shapes."""
    return check_products(
        Products((*_list_block_shapes(768, 3072), (768, CODES), (768, 2))),
        Products(_list_block_shapes(256, 1024), (TYPICAL_ROWS,), MANY_ROWS),
    )


def _list_block_shapes(width: int, inner: int) -> Shapes:
    """(inputs, outputs) of attention and perceptron."""
    return ((width, 3 * width), (width, width), (width, inner), (inner, width))


LOCAL = ModelPlugin(
    name="moss-tts-local",
    model_types=(LOCAL_MODEL_TYPE,),
    pipeline=LOCAL_PIPELINE,
    deployment=Path(__file__).with_name("deploy_local.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_local_builder"),
    check_numerics=Factory("cantata_models.moss_tts.plugin:check_local"),
    write_random_checkpoint=Factory("cantata_models.moss_tts.random_checkpoint:write_tiny_local"),
)
NANO = ModelPlugin(
    name="moss-tts-nano",
    model_types=(NANO_MODEL_TYPE,),
    pipeline=NANO_PIPELINE,
    deployment=Path(__file__).with_name("deploy_nano.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_nano_builder"),
    check_numerics=Factory("cantata_models.moss_tts.plugin:check_nano"),
    write_random_checkpoint=Factory("cantata_models.moss_tts.random_checkpoint:write_tiny_nano"),
)
