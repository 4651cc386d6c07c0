"""VoxCPM2: a talker makes patches of latents, and a codec decodes them to 48 kHz sound.

If a request has a recording, an encoder makes its latents first.
"""

from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.voxcpm2.config import ARCHITECTURE

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.voxcpm2.encoder:load_encoder",
            outputs={"latents": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            "cantata_models.voxcpm2.talker:VoxCpm2Talker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, "cantata_models.voxcpm2.codec:SoundDecoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.latents", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)


PLUGIN = ModelPlugin(
    name="voxcpm2",
    model_types=(ARCHITECTURE,),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.voxcpm2.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.voxcpm2.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.voxcpm2.random_checkpoint:write_tiny"),
)
