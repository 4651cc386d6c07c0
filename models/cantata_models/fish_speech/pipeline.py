"""The topology: a talker generates frames of 10 codes, and a codec decodes them to 44.1 kHz audio.

Recordings of the speakers to follow are encoded to frames first. S2's frames go to the client, too:
what it says next stands behind them.
"""

from cantata.contract.data.chunks import Codes
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, TALKER = "encoder", "talker"
S2_CODES = f"{TALKER}.codes"
PACKAGE = "cantata_models.fish_speech"


def _pipeline(talker: str, *more: EdgeSpec) -> PipelineSpec:
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
            *more,
        ),
    )


S2_PIPELINE = _pipeline("S2Talker", EdgeSpec(S2_CODES, CLIENT))
S1_PIPELINE = _pipeline("S1Talker")
