"""The topology: a talker generates frames of 10 codes, and a codec decodes them to 44.1 kHz audio.

A recording of the speaker to follow is encoded to frames first.
"""

from cantata.contract.data.chunks import Codes
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, TALKER = "encoder", "talker"
PACKAGE = "cantata_models.fish_speech"


def _pipeline(talker: str) -> PipelineSpec:
    """The pipeline around a talker's class."""
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                f"{PACKAGE}.encoder_stage:load_encoder",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker_stage:{talker}"),
            StageSpec("codec", StageKind.CODEC, f"{PACKAGE}.codec_stage:load_decoder"),
        ),
        edges=(
            EdgeSpec("encoder.frames", TALKER),
            EdgeSpec("talker.codes", "codec"),
            EdgeSpec("codec.pcm", CLIENT),
        ),
    )


S2_PIPELINE, S1_PIPELINE = _pipeline("S2Talker"), _pipeline("S1Talker")
