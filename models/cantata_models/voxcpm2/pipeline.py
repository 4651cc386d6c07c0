"""The topology: a talker makes patches of latents, and a codec decodes them to 48 kHz sound.

If a request has a recording, an encoder makes its latents first.
"""

from cantata.contract.data.chunks import Rows
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PACKAGE = "cantata_models.voxcpm2"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.encoder_stage:load_encoder",
            outputs={"latents": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            f"{PACKAGE}.talker_stage:VoxCpm2Talker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, f"{PACKAGE}.codec.decoder:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.latents", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)
