"""The encoder stage: from a recording to the talker's rows of its voice.

A recording is resampled and trimmed here, not where requests are built, so one that is known
already costs nothing. Source of the details: the package `pocket_tts`, data/audio_utils.py.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata_models.pocket_tts.codec.encoder import MimiEncoder
from cantata_models.pocket_tts.inputs import EncoderInput

LONGEST_S = 30.0
"""Seconds of a recording that count, from its beginning: the published program's bound."""
BLOCK_S, PAUSE_S, FADE_S = 0.02, 0.08, 0.02
FLOOR_DB = 35.0
"""Below the loudest block, a block is silence."""
ZERO_CROSSINGS, KAISER_BETA = 10, 5.0
"""Of the low-pass filter, as SciPy's `resample_poly` designs it."""


class VoiceEncoder:
    """Implements `contract.model.feed_forward.FeedForward`."""

    def __init__(self, encoder: MimiEncoder) -> None:
        self._encoder = encoder

    def key(self, inputs: EncoderInput) -> bytes:
        """Hash of the samples and their rate."""
        about = f"at {inputs.sample_rate}".encode()
        return hashlib.sha256(about + inputs.samples.tobytes()).digest()

    def run(self, batch: Sequence[EncoderInput]) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: EncoderInput) -> Mapping[str, Payload] | CantataError:
        rate, frame = self._encoder.sample_rate, self._encoder.samples_per_frame
        if not inputs.samples.any():
            return InvalidRequest("the recording is silent", "ref_audio")
        heard = torch.from_numpy(inputs.samples[: int(LONGEST_S * inputs.sample_rate)].copy())
        sound = end_in_pause(resampled(heard, inputs.sample_rate, rate), rate)
        whole = functional.pad(sound, (0, -len(sound) % frame))
        return {"voice": Rows(np.asarray(self._encoder.encode(whole).numpy(), np.float32))}


def resampled(samples: torch.Tensor, rate: int, wanted: int) -> torch.Tensor:
    """Resample by a low-pass filter of which each output sample takes its part.

    Args:
        samples: [N] float32.
        rate: Hz.
        wanted: Hz.

    Returns:
        [N * wanted / rate], rounded up.
    """
    common = math.gcd(rate, wanted)
    up, down = wanted // common, rate // common
    if up == down:
        return samples
    half = ZERO_CROSSINGS * max(up, down)
    taps = np.sinc(np.arange(-half, half + 1) / max(up, down)) * np.kaiser(
        2 * half + 1, KAISER_BETA
    )
    taps *= up / taps.sum()
    # Of each `up` outputs, every one has a kernel of its own over the same inputs.
    first, last = -(half // up), (half + (up - 1) * down) // up
    places = half + np.arange(up)[:, None] * down - np.arange(first, last + 1) * up
    inside = (places >= 0) & (places <= 2 * half)
    kernels = np.where(inside, taps[places.clip(0, 2 * half)], 0.0).astype(np.float32)
    length = -(-len(samples) * up // down)
    groups = -(-length // up)
    padded = functional.pad(samples, (-first, groups * down + last - len(samples)))
    made = functional.conv1d(padded[None, None], torch.from_numpy(kernels)[:, None], stride=down)
    return made[0, :, :groups].t().reshape(-1)[:length].contiguous()


def end_in_pause(samples: torch.Tensor, rate: int) -> torch.Tensor:
    """Cut the silence behind a recording, fade it out and append a pause of fixed length.

    A voice that ends in mid-word makes the model go on with the word, a long silence delays it.

    Args:
        samples: [N] float32.
        rate: Hz.
    """
    block = max(1, int(BLOCK_S * rate))
    blocks = len(samples) // block
    if not blocks:
        return samples
    loudness = samples[: blocks * block].view(blocks, block).square().mean(dim=1).sqrt()
    decibels = 20 * torch.log10(loudness + 1e-12)
    loud = (decibels > decibels.max() - FLOOR_DB).nonzero()
    kept = samples[: (int(loud[-1]) + 1) * block].clone()
    fade = min(int(FADE_S * rate), len(kept))
    kept[-fade:] *= torch.linspace(1, 0, fade)
    return functional.pad(kept, (0, int(PAUSE_S * rate)))


def load_encoder(checkpoint: Path, device: torch.device) -> VoiceEncoder:
    """Return a checkpoint's encoder in fp32.

    Raises:
        ConfigError: the checkpoint lacks weights of it.
    """
    return VoiceEncoder(MimiEncoder(checkpoint, device))
