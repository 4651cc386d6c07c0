"""A decoder whose samples can be computed by hand: exact, stateful, no network."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from tiny_talker.checkpoint import CODEBOOK_SIZE, NUM_CODEBOOKS

SAMPLES_PER_FRAME = 4
SCALE = 2.0**-14
"""A power of two keeps every sum exact."""


class RunningSumDecoder:
    """Each sample is the scaled sum of all codes up to its frame, modulo 2^13."""

    sample_rate = 50
    channels = 1
    samples_per_frame = SAMPLES_PER_FRAME
    num_codebooks = NUM_CODEBOOKS
    codebook_size = CODEBOOK_SIZE

    def init_state(self, slots: int) -> torch.Tensor:
        return torch.full((slots,), -1)

    def reset(self, state: torch.Tensor, slots: torch.Tensor) -> None:
        state[slots] = 0

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        totals = (state[slots, None] + codes.sum(-1).cumsum(-1)) % 2**13
        state[slots] = totals[:, -1]
        return totals.repeat_interleave(SAMPLES_PER_FRAME, dim=1) * SCALE


def load_decoder(checkpoint: Path, device: torch.device) -> RunningSumDecoder:
    """The factory that a pipeline names."""
    return RunningSumDecoder()


def decode_all(codes: NDArray[np.int32]) -> NDArray[np.float32]:
    """What the decoder makes of [T, Q] codes: [T * 4]."""
    totals = codes.sum(-1).cumsum() % 2**13
    samples: NDArray[np.float32] = (np.repeat(totals, SAMPLES_PER_FRAME) * SCALE).astype("f4")
    return samples
