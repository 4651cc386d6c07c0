"""The topology of both models: a talker makes frames, and a codec decodes them to 48 kHz stereo.

If a request has a recording, an encoder makes its frames first.
"""

from cantata.contract.data.chunks import Codes
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PACKAGE = "cantata_models.moss_tts"


def _pipeline(encoder: str, talker: str, decoder: str) -> PipelineSpec:
    """Return the pipeline with these factories."""
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                f"{PACKAGE}.encoder_stage:{encoder}",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker_stage:{talker}"),
            StageSpec(CODEC, StageKind.CODEC, f"{PACKAGE}.codec_stage:{decoder}"),
        ),
        edges=(
            EdgeSpec(f"{ENCODER}.frames", TALKER),
            EdgeSpec(f"{TALKER}.codes", CODEC),
            EdgeSpec(f"{CODEC}.pcm", CLIENT),
        ),
    )


LOCAL_PIPELINE = _pipeline("load_local_encoder", "LocalTalker", "load_local_decoder")
NANO_PIPELINE = _pipeline("load_nano_encoder", "NanoTalker", "load_nano_decoder")
