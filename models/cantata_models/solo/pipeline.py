"""solo's stages, a talker of frames of codes and a decoder that makes sound of them, and what the
request builder gives the talker."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.request import SamplingOptions
from cantata.contract.model.pipeline import CLIENT, EdgeSpec, PipelineSpec, StageKind, StageSpec


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
