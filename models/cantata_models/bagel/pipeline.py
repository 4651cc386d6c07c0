"""The pipeline: pictures are seen and encoded, the language model answers or draws, the decoder
makes pixels. Of an answer, only its text leaves the language model."""

from __future__ import annotations

from cantata.contract.data.chunks import Codes, Image, Progress, Rows
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
from cantata_models.bagel.ports import (
    DECODE,
    DENOISE,
    IMAGE,
    REFERENCES,
    REFERENCES_STAGE,
    SEE,
    SEEN,
)

STAGES = "cantata_models.bagel.stages"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(SEE, StageKind.FEED_FORWARD, f"{STAGES}.vision:load_eyes", outputs={SEEN: Rows}),
        StageSpec(
            REFERENCES_STAGE,
            StageKind.FEED_FORWARD,
            f"{STAGES}.autoencoder:load_reference_encoder",
            outputs={REFERENCES: Rows},
        ),
        StageSpec(
            DENOISE,
            StageKind.DIFFUSION,
            f"{STAGES}.denoise:load_denoiser",
            outputs={LATENTS: Rows, PROGRESS: Progress, CODES: Codes},
        ),
        StageSpec(
            DECODE,
            StageKind.FEED_FORWARD,
            f"{STAGES}.autoencoder:load_latent_decoder",
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
