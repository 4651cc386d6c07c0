"""The topology: a thinker answers what it reads, hears and sees; a talker speaks the answer while
it is written, and token2wav decodes it to 24 kHz.

If a conversation has media, an encoder makes their rows first.
"""

from cantata.contract.data.chunks import Rows
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, THINKER, TALKER, TOKEN2WAV = "encoder", "thinker", "talker", "token2wav"
SPEAKING = frozenset({TALKER, TOKEN2WAV})
"""Stages that only a spoken answer needs."""
PACKAGE = "cantata_models.qwen25_omni"

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
            f"{PACKAGE}.thinker_stage:Qwen25OmniThinker",
            outputs={"rows": Rows},
        ),
        StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker_stage:Qwen25OmniTalker"),
        StageSpec(TOKEN2WAV, StageKind.CODEC, f"{PACKAGE}.codec_stage:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.rows", THINKER),
        EdgeSpec(f"{THINKER}.codes", CLIENT),
        EdgeSpec(f"{THINKER}.rows", TALKER),
        EdgeSpec(f"{TALKER}.codes", TOKEN2WAV),
        EdgeSpec(f"{TOKEN2WAV}.pcm", CLIENT),
    ),
)
