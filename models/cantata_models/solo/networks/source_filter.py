"""A source filter: pulses and noise, shaped by log gains for each hop of 10 ms.

The gains stand at mel-spaced points. Those of the pulses get the minimum phase that belongs to
them. It is linear in the log gains, so one fixed matrix makes both, and no phase is predicted. A
segment is two hops of the source in a Hann window, filtered; segments overlap and are added.
Segment h ends with hop h, so what comes out is one hop late.

Letters: B rows, H hops, K points, F bins, N samples of a hop.
"""

from __future__ import annotations

import numpy as np
import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.networks.layers import in_training
from cantata_models.solo.networks.packed_product import PackedProduct

RATE_HZ = 24_000
HOP = 240
FFT_SIZE = 1024
BINS = FFT_SIZE // 2 + 1
PADDED_BINS = 528
"""A multiple of the width of a vector register, so that a row's bits do not depend on others."""
HELD = -(-FFT_SIZE // HOP) - 1
"""Earlier segments that still sound in a hop."""
SEGMENT = (HELD + 1) * HOP
TOP_HZ = 11_000.0
"""No harmonic is higher."""
NOISE_HOPS = 1021
"""The noise repeats after so many hops, 10 s; a prime, so that nothing else repeats with it."""
_NEAR_PEAK = 2e-3
_TURN_STEP = 2.0**-32
"""Turns per hop are whole multiples of this: their sums are exact, however a stream is cut."""


def interpolate_points(count: int) -> torch.Tensor:
    """[K, F] float32: linear interpolation from points, equally spaced in mel, to bins."""
    mels = np.linspace(0.0, 2595 * np.log10(1 + RATE_HZ / 2 / 700), count)
    places = 700 * (10 ** (mels / 2595) - 1) / (RATE_HZ / FFT_SIZE)
    nearest = np.interp(np.arange(BINS), places, np.arange(count))
    weights = np.maximum(0.0, 1 - np.abs(nearest[None] - np.arange(count)[:, None]))
    return torch.from_numpy(weights.astype(np.float32))


def find_minimum_phase(log_gains: torch.Tensor) -> torch.Tensor:
    """[..., F] log gains -> [..., F] radians, by the folded cepstrum (Oppenheim and Schafer)."""
    fold = torch.zeros(FFT_SIZE, dtype=torch.float64)
    fold[0] = fold[FFT_SIZE // 2] = 1.0
    fold[1 : FFT_SIZE // 2] = 2.0
    cepstrum = torch.fft.irfft(log_gains.to(torch.complex128), FFT_SIZE) * fold
    phase: torch.Tensor = torch.fft.rfft(cepstrum).imag
    return phase


def _pad_bins(matrix: torch.Tensor) -> torch.Tensor:
    return functional.pad(matrix, (0, PADDED_BINS - BINS))


class FixedProduct(nn.Module):
    """A product with a matrix that is not trained, exact per row in inference.

    [..., inputs] -> [..., outputs].
    """

    weight: torch.Tensor

    def __init__(self, matrix: torch.Tensor) -> None:
        """Args: matrix: [inputs, outputs] float32."""
        super().__init__()
        self.register_buffer("weight", matrix.t().contiguous(), persistent=False)
        self._packed: PackedProduct | None = None

    def forward(self, rows: torch.Tensor) -> torch.Tensor:
        if in_training(rows, self.weight) or rows.device.type != "cpu":
            return functional.linear(rows, self.weight)
        if self._packed is None or not self._packed.is_for(self.weight):
            self._packed = PackedProduct(self.weight, None)
        flat = self._packed(rows.reshape(-1, rows.shape[-1]))
        return flat.view(*rows.shape[:-1], self.weight.shape[0])


class SourceFilter(nn.Module):
    """Has no trained part and keeps no state: callers hold that.

    Args:
        harmonic: points of the pulses' gains.
        noise: points of the noise's gains.
    """

    window: torch.Tensor
    noise_spectra: torch.Tensor
    ramp: torch.Tensor

    def __init__(self, harmonic: int, noise: int) -> None:
        super().__init__()
        gains = interpolate_points(harmonic)
        phase = find_minimum_phase(gains.double()).float()
        self.pulse_bins = FixedProduct(torch.cat([_pad_bins(gains), _pad_bins(phase)], dim=1))
        self.noise_bins = FixedProduct(_pad_bins(interpolate_points(noise)))
        window = torch.hann_window(2 * HOP)
        self.register_buffer("window", window, persistent=False)
        white = torch.randn(NOISE_HOPS, HOP, generator=torch.Generator().manual_seed(6))
        pairs = torch.cat([white, white.roll(-1, dims=0)], dim=1)
        spectra = torch.fft.rfft(pairs * window, FFT_SIZE)
        self.register_buffer("noise_spectra", spectra, persistent=False)
        ramp = (torch.arange(HOP, dtype=torch.float64) + 1) / HOP
        self.register_buffer("ramp", ramp, persistent=False)

    def count_turns(self, before: torch.Tensor, hertz: torch.Tensor) -> torch.Tensor:
        """How far the pitch turns in each hop, as it moves on a line: two [B, H] -> [B, H] float64.

        Args:
            before: Hz at the hops' beginnings.
            hertz: Hz at their ends.
        """
        first, last = before.double(), hertz.double()
        turns = (first * HOP + (last - first) * ((HOP + 1) / 2)) / RATE_HZ
        return torch.round(turns / _TURN_STEP) * _TURN_STEP

    @torch.no_grad()
    def make_pulses(
        self, phase: torch.Tensor, hertz: torch.Tensor, voicing: torch.Tensor
    ) -> torch.Tensor:
        """All harmonics up to `TOP_HZ`, each of amplitude 1 times the voicing.

        The sum of cos(k t) for k = 1..K is sin((K + 1/2) t) / (2 sin(t / 2)) - 1/2.

        Args:
            phase: [B, H] float64, turns at the hops' beginnings.
            hertz: [B, H + 1], at the end of the hop before and of each hop; more than 0.
            voicing: [B, H + 1], from 0 to 1, at the same times.

        Returns:
            [B, H, N] float32.
        """
        ramp = self.ramp
        first, rise = hertz[:, :-1, None].double(), torch.diff(hertz.double())[..., None]
        steps = ramp * HOP
        turns = (
            phase[..., None] + (first * steps + rise * (steps * (steps + 1) / 2 / HOP)) / RATE_HZ
        )
        angle = (2 * torch.pi * (turns - torch.floor(turns))).float()
        harmonics = torch.floor(TOP_HZ / (first + rise * ramp)).float() + 0.5
        below = 2 * torch.sin(angle / 2)
        near_peak = below.abs() < _NEAR_PEAK
        ratio = torch.sin(harmonics * angle) / torch.where(near_peak, torch.ones_like(below), below)
        train = torch.where(near_peak, harmonics, ratio) - 0.5
        gate = voicing[:, :-1, None] + torch.diff(voicing)[..., None] * ramp.float()
        return train * gate

    def make_segments(
        self,
        harmonic: torch.Tensor,
        noise: torch.Tensor,
        pulses: torch.Tensor,
        places: torch.Tensor,
    ) -> torch.Tensor:
        """Two hops of source for each hop, filtered.

        Args:
            harmonic: [B, H, K] log gains of the pulses.
            noise: [B, H, K'] log gains of the noise, which has variance 1 before.
            pulses: [B, H + 1, N]: of the hop before and of each hop.
            places: [B, H] int64: of each hop in the noise, from 0 to `NOISE_HOPS` - 1.

        Returns:
            [B, H, SEGMENT] float32, zeros behind the transform's `FFT_SIZE` samples.
        """
        pairs = torch.cat([pulses[:, :-1], pulses[:, 1:]], dim=2) * self.window
        heard = torch.fft.rfft(pairs, FFT_SIZE)
        log_gains, phase = self.pulse_bins(harmonic).split(PADDED_BINS, dim=-1)
        gains, phase = torch.exp(log_gains.contiguous()), phase.contiguous()
        filters = torch.complex(gains * torch.cos(phase), gains * torch.sin(phase))[..., :BINS]
        hiss = torch.exp(self.noise_bins(noise))[..., :BINS] * self.noise_spectra[places]
        segments: torch.Tensor = torch.fft.irfft(filters * heard + hiss, FFT_SIZE)
        return functional.pad(segments, (0, SEGMENT - FFT_SIZE))


def add_segments(segments: torch.Tensor, held: torch.Tensor) -> torch.Tensor:
    """Adds overlapping segments in a fixed order, so that chunking cannot change a sum.

    Args:
        segments: [B, H, SEGMENT].
        held: [B, HELD, SEGMENT], the segments before; replaced in place by the last ones.

    Returns:
        [B, H * HOP].
    """
    context = torch.cat([held, segments], dim=1)
    held.copy_(context[:, context.shape[1] - HELD :].detach())
    count = segments.shape[1]
    total = context[:, :count, HELD * HOP :]
    for age in range(HELD - 1, -1, -1):
        start = HELD - age
        total = total + context[:, start : start + count, age * HOP : (age + 1) * HOP]
    return total.reshape(len(segments), count * HOP)
