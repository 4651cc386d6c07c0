"""Where the codec's training goes on from the components: with gains fitted to some speech.

Gradient descent on the gains alone, without a network, finds in a dozen steps what filters speech
needs. A linear map from log mel spectra to these gains, of as low a rank as the latents allow, goes
into the layers `envelope`, so that the networks have to learn only what is not linear.

Letters: B rows, F frames, H hops of 10 ms, M mel bands, K points of both gains, Z numbers heard.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import torch
from torch import nn

from cantata_models.solo.networks.filter_decoder import MIDDLE_LOG2_HZ, FilterCodecConfig
from cantata_models.solo.networks.source_filter import NOISE_HOPS
from cantata_models.solo.training.natural.bank import PitchedSound
from cantata_models.solo.training.natural.filter_codec import FilterCodec

FIT_RATE = 0.15
"""Nepers, at first, in each step."""
_LAST_RATE = 0.005
_EDGE_FRAMES = 1
"""At both ends of a crop the fit knows only part of the sound."""
_RIDGE = 60.0
_SILENT_LOG = -5.0
"""Mean log mel of a hop below which its gains hardly matter."""
_LEAST_WEIGHT = 0.02
_LEAST_DEVIATION = 0.05


@dataclass(frozen=True, slots=True)
class FittedFrames:
    """What a regression needs, all float64."""

    mel: torch.Tensor
    """[F, H * M]."""
    pitch: torch.Tensor
    """[F, 2 * H], as in latents: octaves, then voicing."""
    gains: torch.Tensor
    """[F, H * K], less the mean gains."""
    weights: torch.Tensor
    """[F, H, 2]: how much the gains of pulses and of noise matter."""


def fit_gains(
    codec: FilterCodec, sound: PitchedSound, compare: nn.Module, steps: int
) -> torch.Tensor:
    """Fits the gains of a batch, beginning with the codec's own.

    Args:
        codec: is not changed.
        sound: of B rows.
        compare: two [B, N] -> the loss [].
        steps: of gradient descent.

    Returns:
        [B, H, K] log gains.
    """
    decoder, rows = codec.decoder, len(sound.samples)
    with torch.no_grad():
        gains = decoder.run_trunk(decoder.init_state(rows), codec.encode(sound))
    gains.requires_grad_()
    optimizer = torch.optim.Adam([gains], betas=(0.8, 0.95))
    rng, hertz = np.random.default_rng(rows), torch.exp2(sound.log2_hz)
    for step in range(steps):
        for group in optimizer.param_groups:
            group["lr"] = FIT_RATE * (1 - step / steps) + _LAST_RATE
        state = decoder.init_state(rows)
        # Each step hears other noise, lest the gains imitate one noise by another.
        state.place.copy_(torch.from_numpy(rng.integers(NOISE_HOPS, size=rows)))
        output = decoder.make_sound(state, gains, hertz, sound.voicing)[:, decoder.lag :]
        loss = compare(output, sound.samples[:, : output.shape[1]])
        optimizer.zero_grad(set_to_none=True)
        torch.autograd.backward(loss, inputs=[gains])
        optimizer.step()
    return gains.detach()


def fit_frames(
    codec: FilterCodec, sounds: Sequence[PitchedSound], compare: nn.Module, steps: int
) -> FittedFrames:
    """Fits batches, and gathers their frames."""
    mels, pitches, gains = [list[torch.Tensor]() for _ in range(3)]
    hops = codec.config.hops_per_frame
    for sound in sounds:
        shape = (len(sound.samples), -1, hops)
        fitted = fit_gains(codec, sound, compare, steps) - codec.decoder.mean_gains
        octaves = (sound.log2_hz - MIDDLE_LOG2_HZ).reshape(shape)
        pitch = torch.cat([octaves, sound.voicing.reshape(shape)], dim=2)
        mel = codec.encoder.heard.mel(sound.samples)
        inner = slice(_EDGE_FRAMES, pitch.shape[1] - _EDGE_FRAMES)
        for values, whole in ((mels, mel), (pitches, pitch), (gains, fitted)):
            frames = whole.reshape(*pitch.shape[:2], -1)[:, inner]
            values.append(frames.flatten(0, 1).double())
    mel, pitch = torch.cat(mels), torch.cat(pitches)
    level = mel.view(len(mel), hops, -1).mean(dim=2)
    loud = torch.sigmoid(1.5 * (level - _SILENT_LOG)) + _LEAST_WEIGHT
    voiced = pitch[:, hops:].clamp(min=_LEAST_WEIGHT) * loud
    return FittedFrames(mel, pitch, torch.cat(gains), torch.stack([voiced, loud], dim=2))


@torch.no_grad()
def start_from_fits(codec: FilterCodec, fitted: FittedFrames) -> float:
    """Sets the layers `envelope` of both, and silences what the decoder's network adds.

    Returns:
        The share of the weighted variance of fitted gains that a linear map does not explain.
    """
    config, mean = codec.config, fitted.mel.mean(dim=0)
    ones = torch.ones(len(fitted.mel), 1, dtype=torch.float64)
    known = torch.cat([fitted.mel - mean, fitted.pitch, ones], dim=1)
    linear = _regress(known, fitted, config)
    weights = _spread_weights(fitted, config)
    error = (weights * (known @ linear - fitted.gains).square()).sum()
    centre = (weights * fitted.gains).sum(dim=0) / weights.sum(dim=0)
    variance = (weights * (fitted.gains - centre).square()).sum()

    sizes = [fitted.mel.shape[1], fitted.pitch.shape[1], 1]
    from_mel, from_pitch, bias = torch.split(linear, sizes)
    scale = weights.mean(dim=0).sqrt()
    told = (known[:, : len(from_mel)] @ from_mel) * scale
    squares, vectors = torch.linalg.eigh(told.t() @ told / len(told))
    basis, heard = vectors[:, -config.heard_size :], squares[-config.heard_size :]
    # WHY the fourth root: see `start_from_components`.
    size = heard.clamp(min=_LEAST_DEVIATION**2) ** 0.25
    analysis = ((from_mel * scale) @ basis) / size
    codec.encoder.envelope.weight.copy_(analysis.t())
    codec.encoder.envelope.bias.copy_(-mean @ analysis)
    synthesis = torch.cat([(basis * size).t() / scale, from_pitch])
    codec.decoder.envelope.weight.copy_(synthesis.t())
    codec.decoder.envelope.bias.copy_(bias[0])
    # What an untrained network adds is noise, which is heard.
    codec.decoder.out.weight.zero_()
    return float(error / variance)


def _regress(known: torch.Tensor, fitted: FittedFrames, config: FilterCodecConfig) -> torch.Tensor:
    """[X, H * K]: weighted least squares with a ridge, for the pulses and the noise of each hop."""
    counts = [config.harmonic_points, config.noise_points]
    hops = fitted.gains.view(len(known), config.hops_per_frame, -1)
    gains = torch.split(hops, counts, dim=2)
    ridge = _RIDGE * torch.eye(known.shape[1], dtype=torch.float64)
    columns = []
    for hop in range(config.hops_per_frame):
        for kind, wanted in enumerate(gains):
            weighted = (known * fitted.weights[:, hop, kind, None]).t()
            solved = torch.linalg.solve(weighted @ known + ridge, weighted @ wanted[:, hop])
            columns.append(solved)
    return torch.cat(columns, dim=1)


def _spread_weights(fitted: FittedFrames, config: FilterCodecConfig) -> torch.Tensor:
    """[F, H * K]."""
    counts = torch.tensor([config.harmonic_points, config.noise_points])
    return fitted.weights.repeat_interleave(counts, dim=2).flatten(1)
