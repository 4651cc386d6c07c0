"""solo's topology: a talker generates frames of codes, and a decoder turns them into audio."""

from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "talker",
            StageKind.AR,
            "cantata_models.solo.talker_stage:SoloTalker",
            plain="cantata_models.solo.plain_talker:load_plain_talker",
        ),
        StageSpec("decoder", StageKind.CODEC, "cantata_models.solo.codec_stage:load_decoder"),
    ),
    edges=(EdgeSpec("talker.codes", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
)
