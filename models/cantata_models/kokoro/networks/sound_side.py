"""From features, pitch and energy to sound: the decoder and its generator.

Letters: F frames, G = 2 F values of pitch, K spectra, N samples, H hidden numbers, C channels,
S numbers of half a style.
"""

from __future__ import annotations

import math

import torch
from torch import nn
from torch.nn import functional

from cantata_models.kokoro.config import GeneratorConfig, KokoroConfig
from cantata_models.kokoro.networks.adaptive import AdaptiveBlock, Moments, PeriodicBlock
from cantata_models.kokoro.networks.source import HarmonicSource, to_spectra, to_wave

WIDTH, SKIPPED = 1024, 64
"""Channels of the decoder's blocks, and of the text that each gets again, as published. The
configuration does not name them, so they are read from the weights."""
CURVES = 2
UPSAMPLING_SLOPE, LAST_SLOPE = 0.1, 0.01
SOURCE_DILATIONS = (1, 3, 5)
SOURCE_KERNEL, LAST_SOURCE_KERNEL = 7, 11


class KokoroDecoder(nn.Module):
    """Features, pitch and energy -> what the generator makes sound of."""

    def __init__(self, config: KokoroConfig, width: int = WIDTH, skipped: int = SKIPPED) -> None:
        super().__init__()
        style = config.style
        self.encode = AdaptiveBlock(config.hidden + CURVES, width, style)
        again = width + skipped + CURVES
        self.decode = nn.ModuleList(
            [
                *(AdaptiveBlock(again, width, style) for _ in range(3)),
                AdaptiveBlock(again, config.generator.channels, style, upsample=True),
            ]
        )
        self.F0_conv = nn.Conv1d(1, 1, 3, stride=2, padding=1)
        self.N_conv = nn.Conv1d(1, 1, 3, stride=2, padding=1)
        self.asr_res = nn.Sequential(nn.Conv1d(config.hidden, skipped, 1))
        self.generator = Generator(config.generator, style)

    def forward(
        self, text: torch.Tensor, pitch: torch.Tensor, energy: torch.Tensor, style: torch.Tensor
    ) -> torch.Tensor:
        """Return [1, C, G].

        Args:
            text: [1, H, F] features of the phone that each frame is in.
            pitch: [1, G] Hz.
            energy: [1, G].
            style: [1, S], the half for the sound.
        """
        curves = [self.F0_conv(pitch[:, None]), self.N_conv(energy[:, None])]
        x: torch.Tensor = self.encode(torch.cat([text, *curves], dim=1), style)
        skipped = self.asr_res(text)
        for block in self.decode:
            x = block(torch.cat([x, skipped, *curves], dim=1), style)
        return x


class Generator(nn.Module):
    """[1, C, G] and the spectra of the source -> [1, N]."""

    def __init__(self, config: GeneratorConfig, style: int) -> None:
        super().__init__()
        self._config = config
        steps = range(len(config.rates))
        widths = [config.channels // 2**step for step in range(len(config.rates) + 1)]
        self.m_source = HarmonicSource(config.samples_per_pitch)
        self.ups = nn.ModuleList(
            nn.ConvTranspose1d(
                widths[step], widths[step + 1], kernel, rate, padding=(kernel - rate) // 2
            )
            for step, rate, kernel in zip(steps, config.rates, config.kernels, strict=True)
        )
        self.resblocks = nn.ModuleList(
            PeriodicBlock(widths[step + 1], kernel, dilations, style)
            for step in steps
            for kernel, dilations in zip(config.block_kernels, config.block_dilations, strict=True)
        )
        self.noise_convs = nn.ModuleList(
            _make_source_conv(config, step, widths[step + 1]) for step in steps
        )
        self.noise_res = nn.ModuleList(
            PeriodicBlock(
                widths[step + 1],
                LAST_SOURCE_KERNEL if step == steps[-1] else SOURCE_KERNEL,
                SOURCE_DILATIONS,
                style,
            )
            for step in steps
        )
        self.conv_post = nn.Conv1d(widths[-1], config.size + 2, 7, padding=3)

    def excite(self, pitch: torch.Tensor, noise: torch.Tensor) -> torch.Tensor:
        """Return [1, size + 2, K], the spectra of the source; K = G times their rate, and one more.

        Args:
            pitch: [1, G] Hz.
            noise: [N, harmonics] of variance 1.
        """
        wave = self.m_source(pitch, noise)
        return to_spectra(wave, self._config.size, self._config.hop)

    def forward(
        self,
        x: torch.Tensor,
        source: torch.Tensor,
        style: torch.Tensor,
        moments: Moments | None = None,
    ) -> torch.Tensor:
        """Return [1, N].

        Args:
            x: [1, C, G].
            source: [1, size + 2, K] its spectra.
            style: [1, S], the half for the sound.
            moments: of the sentence's parts before this one; None: this is the whole sentence.
        """
        each = len(self._config.block_kernels)
        last = len(self.ups) - 1
        for step, upsample in enumerate(self.ups):
            added = self.noise_res[step](self.noise_convs[step](source), style, moments)
            x = upsample(functional.leaky_relu(x, UPSAMPLING_SLOPE))
            if step == last:  # there is one spectrum more than hops between them
                x = functional.pad(x, (1, 0), mode="reflect")
            x = x + added
            blocks = self.resblocks[step * each : (step + 1) * each]
            made = [block(x, style, moments) for block in blocks]
            x = sum(made[1:], made[0]) / each
        x = self.conv_post(functional.leaky_relu(x, LAST_SLOPE))
        bins = self._config.size // 2 + 1
        magnitude, phase = torch.exp(x[:, :bins]), torch.sin(x[:, bins:])
        return to_wave(magnitude, phase, self._config.size, self._config.hop)


def _make_source_conv(config: GeneratorConfig, step: int, channels: int) -> nn.Conv1d:
    """From the source's spectra to the time steps behind an upsampling."""
    stride = math.prod(config.rates[step + 1 :])
    if step == len(config.rates) - 1:
        return nn.Conv1d(config.size + 2, channels, 1)
    return nn.Conv1d(
        config.size + 2, channels, 2 * stride, stride=stride, padding=(stride + 1) // 2
    )
