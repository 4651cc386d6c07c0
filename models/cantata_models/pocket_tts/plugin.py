"""The Pocket TTS plug-in for the server."""

from __future__ import annotations

from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.plugin import ModelPlugin
from cantata_models.pocket_tts.pipeline import PIPELINE

PLUGIN = ModelPlugin(
    name="pocket_tts",
    model_types=(),
    is_checkpoint=Factory("cantata_models.pocket_tts.config:is_checkpoint"),
    pipeline=PIPELINE,
    deployment=Path(__file__).with_name("deploy.yaml"),
    load_builder=Factory("cantata_models.pocket_tts.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.pocket_tts.numerics:check_numerics"),
    write_random_checkpoint=Factory("cantata_models.pocket_tts.random_checkpoint.write:write_tiny"),
)
