"""The topology: a talker makes frames of 16 codes, a codec turns them into sound at 24 kHz."""

from cantata.contract.pipeline import EdgeSpec, PipelineSpec, StageKind, StageSpec

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "cantata_models.qwen3_tts.talker_stage:Qwen3Talker"),
        StageSpec("codec", StageKind.CODEC, "cantata_models.qwen3_tts.codec_stage:load_decoder"),
    ),
    edges=(EdgeSpec("talker", "codec"),),
)
