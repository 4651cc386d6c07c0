"""The pipeline: prompts and pictures are encoded, the denoiser draws, the decoder makes pixels."""

from __future__ import annotations

from cantata.contract.data.chunks import Image, Progress, Rows
from cantata.contract.model.pipeline import (
    CLIENT,
    LATENTS,
    PROGRESS,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)
from cantata_layers.qwen_image.stages.ports import (
    CONDITION,
    DECODE,
    DENOISE,
    ENCODE,
    IMAGE,
    NEGATIVE,
    REFERENCES,
    REFERENCES_STAGE,
)

STAGES = "cantata_layers.qwen_image.stages"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODE,
            StageKind.FEED_FORWARD,
            f"{STAGES}.encode:load_prompt_encoder",
            outputs={CONDITION: Rows, NEGATIVE: Rows},
        ),
        StageSpec(
            REFERENCES_STAGE,
            StageKind.FEED_FORWARD,
            f"{STAGES}.autoencoder:load_reference_encoder",
            outputs={REFERENCES: Rows},
        ),
        StageSpec(
            DENOISE,
            StageKind.DIFFUSION,
            f"{STAGES}.denoise:load_picture_denoiser",
            outputs={PROGRESS: Progress},
        ),
        StageSpec(
            DECODE,
            StageKind.FEED_FORWARD,
            f"{STAGES}.autoencoder:load_latent_decoder",
            outputs={IMAGE: Image},
        ),
    ),
    edges=(
        EdgeSpec(f"{ENCODE}.{CONDITION}", DENOISE),
        EdgeSpec(f"{ENCODE}.{NEGATIVE}", DENOISE),
        EdgeSpec(f"{REFERENCES_STAGE}.{REFERENCES}", DENOISE),
        EdgeSpec(f"{DENOISE}.{LATENTS}", DECODE),
        EdgeSpec(f"{DENOISE}.{PROGRESS}", CLIENT),
        EdgeSpec(f"{DECODE}.{IMAGE}", CLIENT),
    ),
)
