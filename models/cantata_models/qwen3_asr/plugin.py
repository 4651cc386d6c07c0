"""Qwen3-ASR: an encoder makes rows of a sound, and a thinker writes what was said. If there is an
aligner, it gives the words their times.
"""

from __future__ import annotations

from collections.abc import Collection
from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.data.transcripts import TranscriptUpdate
from cantata.contract.model.factory import Factory
from cantata.contract.model.numerics import NumericsReport
from cantata.contract.model.pipeline import (
    CLIENT,
    TRANSCRIPT,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)
from cantata.contract.model.plugin import ModelPlugin
from cantata_layers.numerics import Products, check_products
from cantata_models.qwen3_asr.config import ALIGNER_FOLDER, MODEL_TYPE

ENCODER, THINKER, ALIGNER = "encoder", "thinker", "aligner"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.qwen3_asr.encoder:Qwen3AsrEncoder",
            outputs={"rows": Rows},
        ),
        StageSpec(THINKER, StageKind.AR, "cantata_models.qwen3_asr.thinker:Qwen3AsrThinker"),
        StageSpec(
            ALIGNER,
            StageKind.FEED_FORWARD,
            "cantata_models.qwen3_asr.aligner:TranscriptAligner",
            outputs={TRANSCRIPT: TranscriptUpdate},
        ),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
        EdgeSpec(f"{THINKER}.codes", ALIGNER),
        EdgeSpec(f"{ALIGNER}.{TRANSCRIPT}", CLIENT),
    ),
)


def unused_stages(checkpoint: Path) -> Collection[str]:
    """Return the aligner, for a checkpoint that has none."""
    return frozenset() if (checkpoint / ALIGNER_FOLDER).is_dir() else frozenset((ALIGNER,))


PRODUCT_SHAPES = ((1024, 4096), (2048, 4096))
"""(inputs, outputs): the inputs of both published heads, the only products outside vLLM's layers;
they have more outputs than are worth a check."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights."""
    return check_products(Products(PRODUCT_SHAPES))


PLUGIN = ModelPlugin(
    name="qwen3-asr",
    model_types=(MODEL_TYPE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_transcription_builder=Factory(
        "cantata_models.qwen3_asr.transcription_builder:Qwen3AsrBuilder"
    ),
    unused_stages=unused_stages,
    check_numerics=Factory("cantata_models.qwen3_asr.plugin:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.qwen3_asr.random_checkpoint:write_tiny"),
)
