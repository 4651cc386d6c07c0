"""Losses between reconstructed and target audio: spectra, and a phone classifier as listener."""

from __future__ import annotations

import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.networks.codec_encoder import LogMel
from cantata_models.solo.training.phone_classifier import HOPS_PER_SLOT, PhoneClassifier

RESOLUTIONS = (512, 1024, 2048)
"""FFT sizes; the hop is a quarter of the size."""
LISTENER_WEIGHT = 0.3


class SpectralLoss(nn.Module):
    """Log-magnitude and linear STFT distance plus log-mel distance. Two [B, N] -> []."""

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


class ListenerLoss(nn.Module):
    """Difference between a phone classifier's responses to two signals. Two [B, N] -> [].

    It adds the distance between hidden layers, as Johnson et al. 2016 do for images, and the
    divergence of the predicted phones. Intelligibility thus counts for more than signal power.
    """

    def __init__(self, classifier: PhoneClassifier) -> None:
        super().__init__()
        self.classifier = classifier.eval().requires_grad_(False)

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        mel = self.classifier.mel
        whole = output.shape[1] - output.shape[1] % (HOPS_PER_SLOT * mel.hop)
        heard, wanted = mel(output[:, :whole]), mel(target[:, :whole])
        level = wanted.mean(dim=1, keepdim=True)
        ours = self.classifier.hidden(heard - level)
        with torch.no_grad():
            theirs = self.classifier.hidden(wanted - level)
            phones = functional.log_softmax(self.classifier.out(theirs[-1]), dim=-1)
        total = torch.zeros((), device=output.device)
        for one, other in zip(ours, theirs, strict=True):
            total = total + (one - other).abs().mean() / other.abs().mean() / len(ours)
        named = functional.log_softmax(self.classifier.out(ours[-1]), dim=-1)
        divergence = (phones.exp() * (phones - named)).sum(dim=-1).mean()
        return total + divergence


class SoundLoss(nn.Module):
    """The weighted sum of the spectral and the listener loss."""

    def __init__(self, classifier: PhoneClassifier, sample_rate: int) -> None:
        super().__init__()
        self.spectral = SpectralLoss(sample_rate)
        self.listener = ListenerLoss(classifier)

    def compare(
        self, output: torch.Tensor, target: torch.Tensor
    ) -> tuple[torch.Tensor, dict[str, float]]:
        """Two [B, N] -> the loss [] and the figures to log."""
        spectral, heard = self.spectral(output, target), self.listener(output, target)
        figures = {"spectral": spectral.item(), "heard": heard.item()}
        return spectral + LISTENER_WEIGHT * heard, figures
