"""`harmonic_vocoder` in torch, for whole crops in batches, so that losses reach the spectra.

Letters: B rows, F frames, N samples.
"""

from __future__ import annotations

import math
from collections.abc import Sequence

import torch
from torch.nn import functional

from cantata_layers.harmonic_vocoder import BINS, HOP, SIZE

MAX_LOG = 7.0


def synthesize_batch(
    parts: Sequence[torch.Tensor], pulses: torch.Tensor, generator: torch.Generator | None = None
) -> torch.Tensor:
    """The sound of crops.

    Args:
        parts: five of [B, F, BINS], as `SpectrumPredictor.predict` returns them.
        pulses: [B, F * HOP], as `make_pulses` makes them of the pitch, which gets no gradient.
        generator: of the noise.

    Returns:
        [B, F * HOP] float32.
    """
    harmonic, rotation, noise, free, phase = parts
    rows, frames, _ = harmonic.shape
    window = torch.hann_window(SIZE, device=pulses.device)
    padded = functional.pad(pulses[:, None], (SIZE // 2, SIZE // 2), mode="reflect")[:, 0]
    segments = padded.unfold(1, SIZE, HOP)[:, :frames] * (window / (SIZE / 4))
    spectrum = torch.fft.rfft(segments)
    spectrum = spectrum * torch.polar(_magnitude(harmonic), math.pi * torch.tanh(rotation))
    drawn = torch.randn(rows, frames, BINS, 2, generator=generator, device=pulses.device)
    spectrum = spectrum + torch.view_as_complex(drawn) * _magnitude(noise)
    spectrum = spectrum + torch.polar(_magnitude(free), phase)
    windowed = torch.fft.irfft(spectrum, SIZE) * window
    total = _overlap_add(windowed)
    weight = _overlap_add((window * window).expand(1, frames, SIZE)).clamp(min=1e-11)
    return (total / weight)[:, SIZE // 2 : SIZE // 2 + frames * HOP]


def _magnitude(logs: torch.Tensor) -> torch.Tensor:
    return torch.exp(logs.clamp(max=MAX_LOG))


def _overlap_add(frames: torch.Tensor) -> torch.Tensor:
    """[B, F, SIZE] -> [B, (F - 1) * HOP + SIZE]."""
    length = (frames.shape[1] - 1) * HOP + SIZE
    summed = functional.fold(frames.transpose(1, 2), (1, length), (1, SIZE), stride=(1, HOP))
    return summed[:, 0, 0]
