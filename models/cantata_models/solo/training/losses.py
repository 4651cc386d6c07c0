"""How far reconstructed sound is from the target: spectra at several resolutions and log-mel."""

from __future__ import annotations

import torch
from torch import nn

from cantata_models.solo.networks.codec_encoder import LogMel

RESOLUTIONS = (512, 1024, 2048)
"""FFT sizes; the hop is a quarter."""


class SpectralLoss(nn.Module):
    """Log-magnitude and linear distance of STFTs, plus log-mel distance. [B, N] twice -> []."""

    def __init__(self, sample_rate: int) -> None:
        super().__init__()
        for size in RESOLUTIONS:
            self.register_buffer(f"window_{size}", torch.hann_window(size), persistent=False)
        self.mel = LogMel(80, 960, 240, sample_rate)

    def _magnitude(self, samples: torch.Tensor, size: int) -> torch.Tensor:
        window = self.get_buffer(f"window_{size}")
        spectrum = torch.stft(
            samples, size, size // 4, window=window, center=False, return_complex=True
        )
        return torch.sqrt(spectrum.real.square() + spectrum.imag.square() + 1e-7)

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), device=output.device)
        for size in RESOLUTIONS:
            ours, theirs = self._magnitude(output, size), self._magnitude(target, size)
            distance = (ours - theirs).norm(dim=(1, 2)) / theirs.norm(dim=(1, 2)).clamp(min=1.0)
            logs = (ours.clamp(min=1e-3).log() - theirs.clamp(min=1e-3).log()).abs().mean()
            total = total + (distance.mean() + logs) / len(RESOLUTIONS)
        mel: torch.Tensor = (self.mel(output) - self.mel(target)).abs().mean()
        return total + mel
