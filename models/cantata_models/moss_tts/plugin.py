"""The plug-ins of both models: a talker makes frames, and a codec decodes them to 48 kHz stereo.

If a request has a recording, an encoder makes its frames first.
"""

from pathlib import Path

from cantata.contract.data.chunks import Codes
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.moss_tts.config import LOCAL_MODEL_TYPE, NANO_MODEL_TYPE

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PACKAGE = "cantata_models.moss_tts"


def _pipeline(encoder: str, talker: str, decoder: str) -> PipelineSpec:
    """Return the pipeline with these factories."""
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                f"{PACKAGE}.encoder:{encoder}",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"{PACKAGE}.talker:{talker}"),
            StageSpec(CODEC, StageKind.CODEC, f"{PACKAGE}.codec:{decoder}"),
        ),
        edges=(
            EdgeSpec(f"{ENCODER}.frames", TALKER),
            EdgeSpec(f"{TALKER}.codes", CODEC),
            EdgeSpec(f"{CODEC}.pcm", CLIENT),
        ),
    )


LOCAL_PIPELINE = _pipeline("load_local_encoder", "LocalTalker", "load_local_decoder")
NANO_PIPELINE = _pipeline("load_nano_encoder", "NanoTalker", "load_nano_decoder")

LOCAL = ModelPlugin(
    name="moss-tts-local",
    model_types=(LOCAL_MODEL_TYPE,),
    pipeline=LOCAL_PIPELINE,
    deployment=Path(__file__).with_name("deploy_local.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_local_builder"),
    check_numerics=Factory("cantata_models.moss_tts.numerics:check_local"),
    write_random_checkpoint=Factory("cantata_models.moss_tts.random_checkpoint:write_tiny_local"),
)
NANO = ModelPlugin(
    name="moss-tts-nano",
    model_types=(NANO_MODEL_TYPE,),
    pipeline=NANO_PIPELINE,
    deployment=Path(__file__).with_name("deploy_nano.yaml"),
    load_builder=Factory("cantata_models.moss_tts.request_builder:load_nano_builder"),
    check_numerics=Factory("cantata_models.moss_tts.numerics:check_nano"),
    write_random_checkpoint=Factory("cantata_models.moss_tts.random_checkpoint:write_tiny_nano"),
)
