"""The topology: an encoder makes rows of a sound, and a thinker writes what was said."""

from cantata.contract.data.chunks import Rows
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, THINKER = "encoder", "thinker"
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
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
    ),
)
