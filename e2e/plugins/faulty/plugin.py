"""The faulty model as the server finds it."""

from __future__ import annotations

from dataclasses import replace

from cantata.contract.model.pipeline import StageSpec
from cantata_models.solo.plugin import PLUGIN as SOLO

TALKER, DECODER = SOLO.pipeline.stages

PLUGIN = replace(
    SOLO,
    name="faulty",
    model_types=("faulty",),
    pipeline=replace(
        SOLO.pipeline,
        stages=(TALKER, StageSpec(DECODER.name, DECODER.kind, "faulty.decoder:load_decoder")),
    ),
)
