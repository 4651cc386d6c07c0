"""BAGEL: pictures are seen and encoded, the language model answers or draws, the decoder makes
pixels. Of an answer, only its text leaves the language model.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Codes, Image, Progress, Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import (
    CLIENT,
    CODES,
    LATENTS,
    PROGRESS,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import Products, check_products

SEE, REFERENCES_STAGE, DENOISE, DECODE = "see", "vae_encode", "denoise", "decode"
SEEN = "seen"
"""Of the vision transformer: tokens [L, D] of all pictures, one after the other."""
REFERENCES = "references"
"""Of the autoencoder's encoder: tokens [N, P] of all pictures, one after the other."""
IMAGE = "image"
"""Of the autoencoder's decoder."""

PACKAGE = "cantata_models.bagel"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            SEE, StageKind.FEED_FORWARD, f"{PACKAGE}.picture_stages:load_eyes", outputs={SEEN: Rows}
        ),
        StageSpec(
            REFERENCES_STAGE,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.picture_stages:load_reference_encoder",
            outputs={REFERENCES: Rows},
        ),
        StageSpec(
            DENOISE,
            StageKind.DIFFUSION,
            f"{PACKAGE}.denoiser:load_denoiser",
            outputs={LATENTS: Rows, PROGRESS: Progress, CODES: Codes},
        ),
        StageSpec(
            DECODE,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.picture_stages:load_latent_decoder",
            outputs={IMAGE: Image},
        ),
    ),
    edges=(
        EdgeSpec(f"{SEE}.{SEEN}", DENOISE),
        EdgeSpec(f"{REFERENCES_STAGE}.{REFERENCES}", DENOISE),
        EdgeSpec(f"{DENOISE}.{LATENTS}", DECODE),
        EdgeSpec(f"{DENOISE}.{PROGRESS}", CLIENT),
        EdgeSpec(f"{DENOISE}.{CODES}", CLIENT),
        EdgeSpec(f"{DECODE}.{IMAGE}", CLIENT),
    ),
)


PRODUCT_SHAPES = ((64, 3584), (3584, 3584), (3584, 512), (3584, 18944), (18944, 3584), (3584, 64))
"""(inputs, outputs) in the published language model and around it."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(PRODUCT_SHAPES))


PLUGIN = ModelPlugin(
    name="bagel",
    model_types=("bagel",),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_chat_builder=Factory("cantata_models.bagel.chat_builder:BagelChatBuilder"),
    load_image_builder=Factory("cantata_models.bagel.picture_builder:BagelPictureBuilder"),
    check_numerics=Factory("cantata_models.bagel.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.bagel.random_checkpoint:write_tiny"),
)
