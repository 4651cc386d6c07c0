"""Where the codec's training begins: with the principal components of speech.

The linear layers that carry spectra past the networks get them, so that the codec makes an envelope
of the right shape and level before its first step, and training is spent on the rest.

Letters: B rows, H hops of 10 ms, T frames of 80 ms, M mel bands, K points, Z numbers of a latent.
"""

from __future__ import annotations

import math

import numpy as np
import torch

from cantata_models.solo.networks.filter_decoder import (
    MIDDLE_LOG2_HZ,
    FilterCodecConfig,
    FilterDecoder,
    PitchedEncoder,
)

_NOISE_LOG = math.log(0.886 * math.sqrt(0.375 * 960))
"""Log mel of noise of variance 1: the mean magnitude of its transform in a Hann window of 960."""
_LINE_LOG = math.log(480 * 25)
"""A harmonic of amplitude 1 adds 480 to the magnitudes of the bins, which are 25 Hz wide; its share
of a band is that over the pitch."""
_VOICE_LESS = 0.6
"""Neighbouring harmonics and the noise add up: measured on some minutes of speech (nepers)."""
_NOISE_BELOW_VOICE = 2.0
"""Where there is voice, the noise is so much weaker than all sound (nepers, a guess)."""
_LEAST_DEVIATION = 0.05


@torch.no_grad()
def start_from_components(
    encoder: PitchedEncoder, decoder: FilterDecoder, samples: torch.Tensor
) -> float:
    """Sets the layers `envelope` of both, and silences what the encoder's network adds.

    Args:
        encoder, decoder: of one configuration.
        samples: [B, T * samples_per_frame] of many voices; some hundred frames are enough.

    Returns:
        The share of the variance of log mel spectra that the components keep.
    """
    config = encoder.config
    mel = encoder.heard.mel(samples)
    patches = mel.reshape(-1, config.hops_per_frame * mel.shape[2]).double()
    mean = patches.mean(dim=0)
    variances, vectors = torch.linalg.eigh(torch.cov(patches.t()))
    kept, basis = variances[-config.heard_size :], vectors[:, -config.heard_size :]
    # WHY the fourth root: the components differ in size by a hundred, and layers by ten at most.
    scale = kept.clamp(min=_LEAST_DEVIATION**2) ** 0.25
    analysis = basis / scale
    encoder.envelope.weight.copy_(analysis.t())
    encoder.envelope.bias.copy_(-mean @ analysis)
    encoder.heard.out.weight.zero_()
    encoder.heard.out.bias.zero_()
    _set_decoder(decoder, config, mean, (basis * scale).t())
    return float(kept.sum() / variances.sum())


def _set_decoder(
    decoder: FilterDecoder, config: FilterCodecConfig, mean: torch.Tensor, basis: torch.Tensor
) -> None:
    """[H * M] log mel and [Z, H * M] of each component, for the hops of a frame."""
    hops, heard = config.hops_per_frame, config.heard_size
    bands = mean.shape[0] // hops
    spread = [
        _spread_bands(bands, count) for count in (config.harmonic_points, config.noise_points)
    ]
    points = torch.cat(spread, dim=1)
    weight = torch.zeros(config.latent_size, hops, points.shape[1], dtype=torch.float64)
    weight[:heard] = basis.view(-1, hops, bands) @ points
    bias = mean.view(hops, bands) @ points - decoder.mean_gains
    for hop in range(hops):
        weight[heard + hop, hop, : config.harmonic_points] = math.log(2)
        weight[heard + hops + hop, hop, config.harmonic_points :] = -_NOISE_BELOW_VOICE
    bias[:, : config.harmonic_points] += MIDDLE_LOG2_HZ * math.log(2) - _LINE_LOG - _VOICE_LESS
    bias[:, config.harmonic_points :] -= _NOISE_LOG
    decoder.envelope.weight.copy_(weight.flatten(1).t())
    decoder.envelope.bias.copy_(bias.flatten())


def _spread_bands(bands: int, count: int) -> torch.Tensor:
    """[M, K]: from mel bands to points equally spaced in mel, on lines between the bands."""
    places = np.clip(np.linspace(0, bands + 1, count) - 1, 0, bands - 1)
    weights = np.maximum(0.0, 1 - np.abs(places[None] - np.arange(bands)[:, None]))
    return torch.from_numpy(weights)
