"""Fish Speech: a talker generates frames of 10 codes, and a codec decodes them to 44.1 kHz audio.

Recordings of the speakers to follow are encoded to frames first. S2's frames go to the client, too:
what it says next stands behind them.
"""

from pathlib import Path

from cantata.contract.data.chunks import Codes
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.fish_speech.config import FishLayout

ENCODER, TALKER = "encoder", "talker"
S2_CODES = f"{TALKER}.codes"


def _pipeline(talker: str, *more: EdgeSpec) -> PipelineSpec:
    """The pipeline around a talker's class."""
    return PipelineSpec(
        stages=(
            StageSpec(
                ENCODER,
                StageKind.FEED_FORWARD,
                "cantata_models.fish_speech.encoder:RecordingFrames",
                outputs={"frames": Codes},
            ),
            StageSpec(TALKER, StageKind.AR, f"cantata_models.fish_speech.talker:{talker}"),
            StageSpec("codec", StageKind.CODEC, "cantata_models.fish_speech.codec:load_decoder"),
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


S2 = ModelPlugin(
    name="fish-speech-s2",
    model_types=(FishLayout.S2,),
    pipeline=S2_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s2.yaml"),
    load_builder=Factory("cantata_models.fish_speech.request_builder:load_s2_builder"),
    check_numerics=Factory("cantata_models.fish_speech.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.fish_speech.random_checkpoint:write_tiny_s2"),
)
S1 = ModelPlugin(
    name="openaudio-s1",
    model_types=(FishLayout.S1,),
    pipeline=S1_PIPELINE,
    deployment=Path(__file__).with_name("deploy_s1.yaml"),
    load_builder=Factory("cantata_models.fish_speech.request_builder:load_s1_builder"),
    check_numerics=Factory("cantata_models.fish_speech.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.fish_speech.random_checkpoint:write_tiny_s1"),
)
