"""A decoder whose samples can be computed by hand: exact, stateful, no network."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import torch
from numpy.typing import NDArray

from cantata.contract.model.codec import StreamingDecoder
from tiny_talker.checkpoint import CODEBOOK_SIZE, LATENT_SIZE, NUM_CODEBOOKS

SAMPLES_PER_FRAME = 4
SCALE = 2.0**-14
"""A power of two keeps every sum exact."""


class RunningSumDecoder(StreamingDecoder):
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
        return (totals.repeat_interleave(self.samples_per_frame, dim=1) * SCALE)[..., None]


class AudibleDecoder(RunningSumDecoder):
    """As many samples as a real voice has, for what depends on bytes."""

    sample_rate = 24_000
    samples_per_frame = 19_200


class StereoDecoder(RunningSumDecoder):
    """The right channel is the left one upside down."""

    sample_rate = 24_000
    channels = 2
    samples_per_frame = 1_920

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        left = super().decode(state, slots, codes)
        return torch.cat([left, -left], dim=-1)


class LatentSumDecoder(StreamingDecoder):
    """The same over latents: each sample is the sum of all whole thousandths up to its frame."""

    sample_rate = 24_000
    channels = 1
    samples_per_frame = 1_920
    latent_size = LATENT_SIZE

    def init_state(self, slots: int) -> torch.Tensor:
        return torch.full((slots,), -1)

    def reset(self, state: torch.Tensor, slots: torch.Tensor) -> None:
        state[slots] = 0

    def decode(
        self, state: torch.Tensor, slots: torch.Tensor, latents: torch.Tensor
    ) -> torch.Tensor:
        thousandths = (1000 * latents).round().long().sum(-1)
        totals = (state[slots, None] + thousandths.cumsum(-1)) % 2**13
        state[slots] = totals[:, -1]
        return (totals.repeat_interleave(self.samples_per_frame, dim=1) * SCALE)[..., None]


class SlowDecoder(RunningSumDecoder):
    """Takes a quarter of a frame's time for each: three listeners are served without a gap."""

    def decode(self, state: torch.Tensor, slots: torch.Tensor, codes: torch.Tensor) -> torch.Tensor:
        time.sleep(0.02 * codes.shape[0] * codes.shape[1])
        return super().decode(state, slots, codes)


def load_decoder(checkpoint: Path, device: torch.device) -> RunningSumDecoder:
    """The factory that a pipeline names."""
    return RunningSumDecoder()


def load_audible_decoder(checkpoint: Path, device: torch.device) -> AudibleDecoder:
    """Another one."""
    return AudibleDecoder()


def load_stereo_decoder(checkpoint: Path, device: torch.device) -> StereoDecoder:
    """One for loudspeakers."""
    return StereoDecoder()


def load_latent_decoder(checkpoint: Path, device: torch.device) -> LatentSumDecoder:
    """One of latents."""
    return LatentSumDecoder()


def load_slow_decoder(checkpoint: Path, device: torch.device) -> SlowDecoder:
    """A fourth."""
    return SlowDecoder()


def decode_all(codes: NDArray[np.int32]) -> NDArray[np.float32]:
    """What the decoder makes of [T, Q] codes: [T * 4, 1]."""
    totals = codes.sum(-1).cumsum() % 2**13
    samples: NDArray[np.float32] = (np.repeat(totals, SAMPLES_PER_FRAME) * SCALE).astype("f4")
    return samples[:, None]
