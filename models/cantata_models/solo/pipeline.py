"""solo's topology: a talker makes frames of codes, a decoder turns them into sound."""

from cantata.contract.pipeline import EdgeSpec, PipelineSpec, StageKind, StageSpec

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "cantata_models.solo.talker_stage:SoloTalker"),
        StageSpec("decoder", StageKind.CODEC, "cantata_models.solo.codec_stage:load_decoder"),
    ),
    edges=(EdgeSpec("talker", "decoder"),),
)
