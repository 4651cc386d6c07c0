"""What the spectrum predictor is trained by: distances between spectra, and a discriminator.

Letters: B rows, N samples, C channels.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import torch
from torch import nn
from torch.nn import functional
from torch.nn.utils.parametrizations import weight_norm

from cantata_layers.harmonic_vocoder import SAMPLE_RATE

RESOLUTIONS = {256: 32, 512: 64, 1024: 80, 2048: 128}
"""FFT sizes, with hops of a quarter, and the mel bands of each."""
JUDGED_SIZES = (512, 1024, 2048)
"""FFT sizes that the discriminator sees."""
MEL_RANGE_HZ = (20.0, SAMPLE_RATE / 2)
_MIN_MAGNITUDE, _MIN_MEL = 1e-5, 1e-4
_SLOPE = 0.2

Layers = list[torch.Tensor]


def measure_magnitude(samples: torch.Tensor, size: int) -> torch.Tensor:
    """[B, N] -> [B, size / 2 + 1, frames]."""
    window = torch.hann_window(size, device=samples.device)
    spectrum = torch.stft(samples, size, size // 4, window=window, return_complex=True)
    return spectrum.abs().clamp(min=_MIN_MAGNITUDE)


def make_mel_bands(size: int, bands: int) -> torch.Tensor:
    """[bands, size / 2 + 1]: triangles of height 1, equally wide in mel."""
    low, high = (2595 * np.log10(1 + hertz / 700) for hertz in MEL_RANGE_HZ)
    edges = 700 * (10 ** (np.linspace(low, high, bands + 2) / 2595) - 1)
    hertz = np.linspace(0, SAMPLE_RATE / 2, size // 2 + 1)
    rising = (hertz - edges[:-2, None]) / np.diff(edges)[:-1, None]
    falling = (edges[2:, None] - hertz) / np.diff(edges)[1:, None]
    return torch.from_numpy(np.clip(np.minimum(rising, falling), 0, None).astype(np.float32))


class SpectrumDistance(nn.Module):
    """Log magnitudes, their relative error, and log mel, at four resolutions. Two [B, N] -> []."""

    def __init__(self) -> None:
        super().__init__()
        for size, bands in RESOLUTIONS.items():
            self.register_buffer(f"bands_{size}", make_mel_bands(size, bands), persistent=False)

    def forward(self, output: torch.Tensor, target: torch.Tensor) -> torch.Tensor:
        total = torch.zeros((), device=output.device)
        for size in RESOLUTIONS:
            bands = self.get_buffer(f"bands_{size}")
            ours, theirs = measure_magnitude(output, size), measure_magnitude(target, size)
            logs = (torch.log(ours) - torch.log(theirs)).abs().mean()
            error = (ours - theirs).norm(dim=(1, 2)) / theirs.norm(dim=(1, 2)).clamp(min=1e-3)
            heard = torch.log(bands @ ours + _MIN_MEL) - torch.log(bands @ theirs + _MIN_MEL)
            total = total + (logs + error.mean()) / 2 + heard.abs().mean()
        return total / len(RESOLUTIONS)


class ResolutionDiscriminator(nn.Module):
    """Tells the teacher's spectrograms from the network's, at one resolution.

    After the multi-resolution discriminator of UnivNet (Jang et al. 2021), on log magnitudes, with
    the speaker as a projection (Miyato and Koyama 2018).

    Args:
        size: of the FFT.
        channels: C of the first layers; twice as many later.
        speakers: that there are.
    """

    def __init__(self, size: int, channels: int, speakers: int) -> None:
        super().__init__()
        self.size = size
        wide = 2 * channels
        shapes = (
            (1, channels, (3, 5), (1, 2)),
            (channels, channels, (3, 5), (1, 2)),
            (channels, wide, (3, 5), (2, 2)),
            (wide, wide, (3, 5), (2, 2)),
            (wide, wide, (3, 3), (1, 1)),
        )
        self.layers = nn.ModuleList(
            weight_norm(nn.Conv2d(a, b, kernel, stride, (kernel[0] // 2, kernel[1] // 2)))
            for a, b, kernel, stride in shapes
        )
        self.out = weight_norm(nn.Conv2d(wide, 1, 3, padding=1))
        self.speakers = nn.Embedding(speakers, wide)

    def forward(self, samples: torch.Tensor, voices: torch.Tensor) -> tuple[torch.Tensor, Layers]:
        """[B, N] and [B] -> scores, more than 0 for the teacher's sound, and all hidden layers."""
        logs = torch.log(measure_magnitude(samples, self.size)).transpose(1, 2)
        hidden, layers = logs[:, None] / 3 + 1, list[torch.Tensor]()
        for layer in self.layers:
            hidden = functional.leaky_relu(layer(hidden), _SLOPE)
            layers.append(hidden)
        whose = (self.speakers(voices)[:, :, None, None] * hidden).mean(dim=1, keepdim=True)
        return self.out(hidden) + whose, layers


class Discriminator(nn.Module):
    """One discriminator for each of `JUDGED_SIZES`.

    Args:
        speakers: that there are.
        channels: C.
    """

    def __init__(self, speakers: int, channels: int = 16) -> None:
        super().__init__()
        self.parts = nn.ModuleList(
            ResolutionDiscriminator(size, channels, speakers) for size in JUDGED_SIZES
        )

    def forward(
        self, samples: torch.Tensor, voices: torch.Tensor
    ) -> list[tuple[torch.Tensor, Layers]]:
        return [part(samples, voices) for part in self.parts]


Verdicts = Sequence[tuple[torch.Tensor, Layers]]


def measure_hinge(real: Verdicts, made: Verdicts) -> torch.Tensor:
    """The discriminator's loss []; 2 if it cannot tell one from the other."""
    losses = [
        functional.relu(1 - score).mean() + functional.relu(1 + other).mean()
        for (score, _), (other, _) in zip(real, made, strict=True)
    ]
    return torch.stack(losses).mean().float()


def measure_deceit(made: Verdicts) -> torch.Tensor:
    """The network's adversarial loss []."""
    return -torch.stack([score.mean() for score, _ in made]).mean().float()


def measure_features(real: Verdicts, made: Verdicts) -> torch.Tensor:
    """The distance [] between hidden layers."""
    distances = [
        (ours - theirs.detach()).abs().mean()
        for (_, own), (_, other) in zip(made, real, strict=True)
        for ours, theirs in zip(own, other, strict=True)
    ]
    return torch.stack(distances).mean().float()
