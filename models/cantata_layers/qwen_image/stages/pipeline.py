"""The pipeline: prompts and pictures are encoded, the denoiser draws, the decoder makes pixels; and
what the request builder gives the stages.

Letters: P tokens, H height, W width."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Image, Progress, Rows
from cantata.contract.data.forward_size import ForwardSize
from cantata.contract.model.pipeline import (
    CLIENT,
    LATENTS,
    PROGRESS,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)

ENCODE, REFERENCES_STAGE, DENOISE, DECODE = "encode", "vae_encode", "denoise", "decode"
CONDITION, NEGATIVE = "condition", "negative"
"""Of the text encoder: embeddings [T, E] of the prompt, and of what the picture shall not show."""
REFERENCES = "references"
"""Of the autoencoder's encoder: tokens [R, P] of all pictures, one after the other."""
IMAGE = "image"
"""Of the autoencoder's decoder."""


GridSize = tuple[int, int]
"""Tokens of a picture: rows, columns."""


@dataclass(frozen=True, slots=True)
class EncodeInput:
    """A prompt, and what the picture shall not show."""

    prompt: NDArray[np.int32]
    """[P] tokens."""
    negative: NDArray[np.int32] | None
    """[P] tokens; None: the picture is drawn without guidance."""
    pictures: tuple[NDArray[np.uint8], ...] = ()
    """[H, W, 3] each, as the text encoder sees them."""


@dataclass(frozen=True, slots=True)
class ReferenceInput:
    """Pictures that are changed."""

    pictures: tuple[NDArray[np.uint8], ...]
    """[H, W, 3] each, as the denoiser keeps them."""


@dataclass(frozen=True, slots=True)
class DenoiseInput:
    """One picture to draw."""

    seed: int
    grid: GridSize
    shares: tuple[float, ...]
    """Of noise before each step, and 0 after the last."""
    guidance: float
    """1: none."""
    references: tuple[GridSize, ...] = ()
    previews: int = 0
    """That the caller wants to see."""


@dataclass(frozen=True, slots=True)
class DecodeInput:
    """The picture's size."""

    grid: GridSize


def forward_size(texts: Sequence[int], pictures: int) -> ForwardSize:
    """How much a step of one picture computes.

    Args:
        texts: tokens of the text of each branch.
        pictures: tokens of noise and references.
    """
    rows = [text + pictures for text in texts]
    return ForwardSize(sum(rows), sum(row**2 for row in rows))


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
