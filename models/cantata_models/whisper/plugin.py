"""Whisper: one stage that recognizes."""

from __future__ import annotations

from importlib.util import find_spec
from pathlib import Path

from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import (
    CLIENT,
    TRANSCRIPT,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)
from cantata.contract.model.plugin import ModelPlugin

RECOGNIZE = "recognize"
OUTPUT = f"{RECOGNIZE}.{TRANSCRIPT}"

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            RECOGNIZE,
            StageKind.RECOGNITION,
            "cantata_models.whisper.recognizer:load_recognizer",
        ),
    ),
    edges=(EdgeSpec(OUTPUT, CLIENT),),
)

_FOLDER = Path(__file__).parent
PLUGIN = ModelPlugin(
    name="whisper",
    model_types=("whisper",),
    # CTranslate2 writes no type.
    config_keys=frozenset({"alignment_heads", "suppress_ids"}),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_transcription_builder=Factory(
        "cantata_models.whisper.request_builder:WhisperRequestBuilder"
    ),
    # Its runtime is an extra.
    embedded_checkpoint=_FOLDER / "weights" if find_spec("ctranslate2") else None,
    write_random_checkpoint=Factory("cantata_models.whisper.random_checkpoint:write_tiny"),
)
