"""Chunks as the stages of a speech pipeline make them."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from cantata.contract.data.chunks import Chunk, Codes, Milestone, Pcm, WordTiming
from cantata.contract.model.pipeline import CODES, PCM


def codes_chunk(
    request_id: str,
    index: int,
    values: NDArray[np.int32],
    final: bool,
    words: tuple[WordTiming, ...] = (),
    *,
    context_frames: int = 0,
    milestones: tuple[Milestone, ...] = (),
) -> Chunk[Codes]:
    """[T, Q] frames of an AR stage."""
    return Chunk(request_id, CODES, index, Codes(values, context_frames, words), final, milestones)


def pcm_chunk(
    request_id: str,
    index: int,
    samples: NDArray[np.float32],
    final: bool,
    words: tuple[WordTiming, ...] = (),
    milestones: tuple[Milestone, ...] = (),
) -> Chunk[Pcm]:
    """[N, C] samples of a codec stage."""
    return Chunk(request_id, PCM, index, Pcm(samples, words), final, milestones)
