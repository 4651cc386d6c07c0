"""Pocket TTS: a talker makes latents, and a codec decodes them to 24 kHz sound.

If a request has a recording, an encoder makes the talker's rows of it first.
"""

from __future__ import annotations

from pathlib import Path

from cantata.contract.data.chunks import Rows
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin

ENCODER, TALKER, CODEC = "encoder", "talker", "codec"
PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            ENCODER,
            StageKind.FEED_FORWARD,
            "cantata_models.pocket_tts.encoder:VoiceEncoder",
            outputs={"voice": Rows},
        ),
        StageSpec(
            TALKER,
            StageKind.AR,
            "cantata_models.pocket_tts.talker:PocketTalker",
            outputs={"latents": Rows},
        ),
        StageSpec(CODEC, StageKind.CODEC, "cantata_models.pocket_tts.codec:MimiDecoder"),
    ),
    edges=(
        EdgeSpec(f"{ENCODER}.voice", TALKER),
        EdgeSpec(f"{TALKER}.latents", CODEC),
        EdgeSpec(f"{CODEC}.pcm", CLIENT),
    ),
)


PLUGIN = ModelPlugin(
    name="pocket_tts",
    model_types=(),
    is_checkpoint=Factory("cantata_models.pocket_tts.config:is_checkpoint"),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.pocket_tts.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.pocket_tts.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.pocket_tts.random_checkpoint:write_tiny"),
)
