"""solo's plug-in, and the talker's input.

Its stages are a talker, which makes frames of codes, and a decoder, which makes sound of them.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.factory import Factory
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec
from cantata.contract.model.plugin import ModelPlugin

PIPELINE = PipelineSpec(
    stages=(
        StageSpec(
            "talker",
            StageKind.AR,
            "cantata_models.solo.talker_stage:SoloTalker",
            plain="cantata_models.solo.plain_talker:load_plain_talker",
        ),
        StageSpec("decoder", StageKind.CODEC, "cantata_models.solo.checkpoint:load_decoder"),
    ),
    edges=(EdgeSpec("talker.codes", "decoder"), EdgeSpec("decoder.pcm", CLIENT)),
)
_FOLDER = Path(__file__).parent
PLUGIN = ModelPlugin(
    name="solo",
    model_types=("cantata_solo",),
    pipeline=PIPELINE,
    deployment=_FOLDER / "deploy.yaml",
    load_builder=Factory("cantata_models.solo.request_builder:load_builder"),
    check_numerics=Factory("cantata_models.solo.numerics:check_numerics"),
    embedded_checkpoint=_FOLDER / "weights",
)


@dataclass(frozen=True, slots=True)
class TalkerInput:
    """One sentence, and how to say it."""

    phones: NDArray[np.int64]
    """[N] ids."""
    word_starts: NDArray[np.bool_]
    """[N]"""
    question: bool
    speaker: int | NDArray[np.float32]
    """The index of a stock voice, or a speaker's vector [F]."""
    speed: float
    distinct: bool
    """Said distinctly, to be understood when played faster."""
    sampling: SamplingOptions
