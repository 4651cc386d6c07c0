"""What the generator filters: the pitch's harmonics and noise; and spectra from and to samples.

Letters: G values of pitch, N samples, P harmonics, B bins, K spectra.
"""

from __future__ import annotations

import math

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from cantata_models.kokoro.config import SAMPLE_RATE

HARMONICS = 9
"""The pitch itself and eight above it."""
AMPLITUDE = 0.1
BREATH = 0.003
"""Standard deviation of the noise in voiced sound; in unvoiced, a third of `AMPLITUDE`."""
LEAST_PITCH_HZ = 10.0
"""Up to this, sound is unvoiced."""


def draw_noise(seed: int, samples: int) -> torch.Tensor:
    """[N, P] float32 of variance 1; the first samples' noise is the same for any N."""
    drawn = np.random.default_rng(seed).standard_normal((samples, HARMONICS), np.float32)
    return torch.from_numpy(drawn)


class HarmonicSource(nn.Module):
    """[1, G] Hz -> [1, N]: sines of all harmonics, mixed into one wave."""

    def __init__(self, samples_per_pitch: int) -> None:
        super().__init__()
        self._step = samples_per_pitch
        self.l_linear = nn.Linear(HARMONICS, 1)

    def forward(self, pitch: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Args: pitch [1, G] Hz, noise [N, P] of variance 1."""
        harmonics = pitch[0, :, None] * torch.arange(1, HARMONICS + 1, device=pitch.device)
        turns = torch.cumsum((harmonics / SAMPLE_RATE) % 1, dim=0)
        # In this order: float32 rounds the phase of a long sentence, and the reference's too.
        angles = turns * 2 * math.pi * self._step
        at_samples = functional.interpolate(
            angles.T[None], scale_factor=float(self._step), mode="linear"
        )
        voiced = (pitch[0] > LEAST_PITCH_HZ).float().repeat_interleave(self._step)[:, None]
        loudness = voiced * BREATH + (1 - voiced) * AMPLITUDE / 3
        waves = torch.sin(at_samples.mT) * AMPLITUDE * voiced + loudness * noise
        mixed: torch.Tensor = torch.tanh(self.l_linear(waves))
        return mixed[..., 0]


def to_spectra(wave: torch.Tensor, size: int, hop: int) -> torch.Tensor:
    """[1, N] -> [1, 2 B, K]: magnitudes, then phases in radians; K = N / hop + 1."""
    spectra = torch.stft(wave, size, hop, window=_window(size, wave), return_complex=True)
    return torch.cat([spectra.abs(), spectra.angle()], dim=1)


def to_wave(magnitude: torch.Tensor, phase: torch.Tensor, size: int, hop: int) -> torch.Tensor:
    """[1, B, K] each -> [1, N], N = (K - 1) hop."""
    return torch.istft(torch.polar(magnitude, phase), size, hop, window=_window(size, magnitude))


def _window(size: int, like: torch.Tensor) -> torch.Tensor:
    return torch.hann_window(size, device=like.device)
