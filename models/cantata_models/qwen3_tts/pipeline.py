"""The topology: a talker generates frames of 16 codes, and a codec decodes them to 24 kHz audio."""

from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec

PIPELINE = PipelineSpec(
    stages=(
        StageSpec("talker", StageKind.AR, "cantata_models.qwen3_tts.talker_stage:Qwen3Talker"),
        StageSpec("codec", StageKind.CODEC, "cantata_models.qwen3_tts.codec_stage:load_decoder"),
    ),
    edges=(EdgeSpec("talker.codes", "codec"), EdgeSpec("codec.pcm", CLIENT)),
)
