"""Whisper's pipeline: one stage that recognises."""

from __future__ import annotations

from cantata.contract.model.pipeline import (
    CLIENT,
    TRANSCRIPT,
    EdgeSpec,
    PipelineSpec,
    StageKind,
    StageSpec,
)

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
