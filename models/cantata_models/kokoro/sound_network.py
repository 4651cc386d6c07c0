"""From features, pitch and energy to sound: the decoder and its generator, which filters harmonics
and noise.

Letters: F frames, G = 2 F values of pitch, P harmonics, B bins, K spectra, N samples, H hidden
numbers, C channels, S numbers of half a style.
"""

from __future__ import annotations

import math
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from functools import partial

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from cantata_models.kokoro.config import SAMPLE_RATE, GeneratorConfig, KokoroConfig
from cantata_models.kokoro.text_network import AdaptiveBlock, Moments, PeriodicBlock

HARMONICS = 9
"""The pitch itself and eight above it."""
AMPLITUDE = 0.1
BREATH = 0.003
"""Standard deviation of the noise in voiced sound; in unvoiced, a third of `AMPLITUDE`."""
MIN_PITCH_HZ = 10.0
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
        voiced = (pitch[0] > MIN_PITCH_HZ).float().repeat_interleave(self._step)[:, None]
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
    """[1, C, G] and the spectra of the source -> [1, N].

    Blocks that do not need each other run at the same time, a core each: one long task for each
    thread loses less on a busy machine than all threads in every operation, and the samples are
    the same.
    """

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
        self._workers = ThreadPoolExecutor(len(os.sched_getaffinity(0)))
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

        def begin(block: nn.Module, x: torch.Tensor) -> Callable[[], torch.Tensor]:
            if x.device.type == "cpu":
                return self._workers.submit(_run_block, block, x, style, moments).result
            # Other devices queue what they are given: a thread gains nothing.
            return partial(_run_block, block, x, style, moments)

        # The first one first, because all else waits for it.
        excited = [
            begin(block, conv(source))
            for block, conv in zip(self.noise_res, self.noise_convs, strict=True)
        ]
        for step, upsample in enumerate(self.ups):
            x = upsample(functional.leaky_relu(x, UPSAMPLING_SLOPE))
            if step == last:  # there is one spectrum more than hops between them
                x = functional.pad(x, (1, 0), mode="reflect")
            x = x + excited[step]()
            blocks = self.resblocks[step * each : (step + 1) * each]
            # The widest kernels are last, and take longest.
            tasks = [begin(block, x) for block in reversed(blocks)]
            made = [finish() for finish in reversed(tasks)]
            x = sum(made[1:], made[0]) / each
        x = self.conv_post(functional.leaky_relu(x, LAST_SLOPE))
        bins = self._config.size // 2 + 1
        magnitude, phase = torch.exp(x[:, :bins]), torch.sin(x[:, bins:])
        return to_wave(magnitude, phase, self._config.size, self._config.hop)


@torch.inference_mode()
def _run_block(
    block: nn.Module, x: torch.Tensor, style: torch.Tensor, moments: Moments | None
) -> torch.Tensor:
    """A block in a thread, which has modes of its own."""
    made: torch.Tensor = block(x, style, moments)
    return made


def _make_source_conv(config: GeneratorConfig, step: int, channels: int) -> nn.Conv1d:
    """From the source's spectra to the time steps behind an upsampling."""
    stride = math.prod(config.rates[step + 1 :])
    if step == len(config.rates) - 1:
        return nn.Conv1d(config.size + 2, channels, 1)
    return nn.Conv1d(
        config.size + 2, channels, 2 * stride, stride=stride, padding=(stride + 1) // 2
    )
