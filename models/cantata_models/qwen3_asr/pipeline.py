"""The topology: an encoder makes rows of a sound, and a thinker writes what was said. If there is
an aligner, it gives the words their times.
"""

from cantata.contract.data.chunks import Rows
from cantata.contract.data.transcripts import TranscriptUpdate
from cantata.contract.model.pipeline import (
    CLIENT,
    TRANSCRIPT,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)

ENCODER, THINKER, ALIGNER = "encoder", "thinker", "aligner"
PACKAGE = "cantata_models.qwen3_asr"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.encoder_stage:load_encoder",
            outputs={"rows": Rows},
        ),
        StageSpec(THINKER, StageKind.AR, f"{PACKAGE}.thinker_stage:Qwen3AsrThinker"),
        StageSpec(
            ALIGNER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.aligner.stage:load_aligner",
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
