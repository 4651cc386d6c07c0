"""The topology: a thinker answers what it reads, hears and sees; a talker speaks the answer while
it is written, and code2wav decodes it to 24 kHz.

If a conversation has media, an encoder makes their rows first.
"""

from cantata.contract.data.chunks import Rows
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, THINKER, TALKER, CODE2WAV = "encoder", "thinker", "talker", "code2wav"
SPEAKERS = frozenset({TALKER, CODE2WAV})
"""Stages that only a spoken answer needs."""
PACKAGE = "cantata_models.qwen3_omni"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.encoder_stage:load_encoder",
            outputs={"rows": Rows},
        ),
        StageSpec(
            THINKER,
            StageKind.AR,
            f"{PACKAGE}.thinker_stage:OmniThinker",
            outputs={"rows": Rows},
        ),
        StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker_stage:OmniTalker"),
        StageSpec(CODE2WAV, StageKind.CODEC, f"{PACKAGE}.code2wav_stage:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
        EdgeSpec(f"{THINKER}.codes", TALKER),
        EdgeSpec(f"{THINKER}.rows", TALKER),
        EdgeSpec(f"{TALKER}.codes", CODE2WAV),
        EdgeSpec(f"{CODE2WAV}.pcm", CLIENT),
    ),
)
