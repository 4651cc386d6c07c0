"""The topology: a talker makes latents, and a codec decodes them to 24 kHz sound.

If a request has a recording, an encoder makes the talker's rows of it first.
"""

from cantata.contract.data.chunks import Rows
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PACKAGE = "cantata_models.pocket_tts"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            f"{PACKAGE}.encoder_stage:load_encoder",
            outputs={"voice": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            f"{PACKAGE}.talker_stage:PocketTalker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, f"{PACKAGE}.codec.decoder:load_decoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.voice", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)
