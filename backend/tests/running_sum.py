"""A decoder whose samples can be written down by hand."""

from __future__ import annotations

import torch

from cantata.contract.model.codec import StreamingDecoder

SAMPLES_PER_FRAME = 4


class RunningSumDecoder(StreamingDecoder):
    """Each sample is the sum of all codes up to its frame: exact, stateful, easy to predict."""

    sample_rate = 8
    channels = 1
    samples_per_frame = SAMPLES_PER_FRAME
    num_codebooks = 2
    codebook_size = 100

    def init_state(self, slots: int) -> torch.Tensor:
        return torch.full((slots,), float("nan"))

    def reset(self, state: torch.Tensor, slots: torch.Tensor) -> None:
        state[slots] = 0

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        totals = state[slots, None] + codes.sum(-1).cumsum(-1)
        state[slots] = totals[:, -1]
        return totals.repeat_interleave(SAMPLES_PER_FRAME, dim=1)[..., None]
