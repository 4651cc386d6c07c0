"""The encoder stage: from a recording to frames, and to the talker's rows of its voice.

A recording is resampled and trimmed here, not where requests are built, so one that is known
already costs nothing. Source of the details: the package `pocket_tts`, data/audio_utils.py.

Letters: N samples, K frames, L positions, C channels, S positions of a frame.
"""

from __future__ import annotations

import hashlib
import math
from collections.abc import Mapping, Sequence
from pathlib import Path

import numpy as np
import torch
from torch.nn import functional

from cantata.contract.data.chunks import Payload, Rows
from cantata.contract.data.errors import CantataError, InvalidRequest
from cantata_layers.causal_convolutions import CausalConv, CausalDownsample, ConvCache
from cantata_layers.exact_layers import Linear, elu
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.pocket_tts.codec import (
    MIMI,
    WindowedTransformer,
    load_seanet_units,
    read_part,
)
from cantata_models.pocket_tts.config import SeanetSizes, load_config
from cantata_models.pocket_tts.prompt import PocketEncoderInput

BLOCK_FRAMES = 8
"""Encoded at a time, with the state carried over: a long recording needs no more memory."""


class LoweringStage:
    """Units, then a lower rate and twice the channels."""

    def __init__(
        self, weights: Weights, first: int, size: int, ratio: int, sizes: SeanetSizes
    ) -> None:
        self._units = load_seanet_units(weights, "encoder.model", first, size, sizes)
        name = f"encoder.model.{first + sizes.units + 1}.conv"
        self._down = CausalDownsample(weights, name, size, 2 * size, ratio, 2 * ratio)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        for unit in self._units:
            x = unit(x, past)
        return self._down(elu(x), past)


class MimiEncoder:
    """The encoder of a checkpoint, in fp32, and the projection behind it.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    def __init__(
        self, checkpoint: Path, device: torch.device, read: ReadWeights = read_part
    ) -> None:
        config = load_config(checkpoint)
        mimi, sizes = config.mimi, config.mimi.encoder
        self.sample_rate, self.samples_per_frame = mimi.sample_rate, mimi.samples_per_frame
        self._stride, self._device = mimi.stride, device
        weights = read(config.weights, MIMI, device)
        width, number = sizes.filters, 1
        self._first = CausalConv(weights, "encoder.model.0.conv", 1, width, sizes.kernel)
        self._stages: list[LoweringStage] = []
        for ratio in reversed(sizes.ratios):
            self._stages.append(LoweringStage(weights, number, width, ratio, sizes))
            width, number = 2 * width, number + sizes.units + 2
        self._last = CausalConv(
            weights, f"encoder.model.{number + 1}.conv", width, sizes.size, sizes.last_kernel
        )
        self._transformer = WindowedTransformer(
            weights, "encoder_transformer", mimi.encoder_transformer, mimi.stride
        )
        taps = weights.take(
            "downsample.conv.conv.weight", mimi.encoded, sizes.size, 2 * mimi.stride
        )
        self._gather = Linear(taps.transpose(1, 2).reshape(mimi.encoded, -1))
        speaker = read(config.weights, "flow_lm.speaker_", device)
        projection = speaker.take("proj_weight", config.backbone.size, mimi.encoded)
        self._project = Linear(projection)

    @torch.inference_mode()
    def encode(self, samples: torch.Tensor) -> torch.Tensor:
        """Encode a recording.

        Args:
            samples: [N] float32, whole frames, at least one.

        Returns:
            [K, H] float32 on the CPU: the talker's rows of the voice.
        """
        blocks = torch.split(samples.to(self._device), BLOCK_FRAMES * self.samples_per_frame)
        position = torch.zeros(1, dtype=torch.int64, device=self._device)
        histories, hidden = None, []
        for block in blocks:
            past = ConvCache(position, histories)
            x = self._first(block.view(1, -1, 1), past)
            for stage in self._stages:
                x = stage(x, past)
            hidden.append(self._transformer(self._last(elu(x), past), past))
            position, histories = position + BLOCK_FRAMES, past.extended
        return self._project(self._gathered(torch.cat(hidden, dim=1)))[0].cpu()

    def _gathered(self, hidden: torch.Tensor) -> torch.Tensor:
        """[1, K * S, C] -> [1, K, C']: each frame with the one before it, and in front of the first
        its first position again and again."""
        before = hidden[:, :1].expand(-1, self._stride, -1)
        frames = torch.cat([before, hidden], dim=1).view(1, -1, self._stride * hidden.shape[2])
        return self._gather(torch.cat([frames[:, :-1], frames[:, 1:]], dim=2))


MAX_S = 30.0
"""Seconds of a recording that count, from its beginning: the published program's bound."""
BLOCK_S, PAUSE_S, FADE_S = 0.02, 0.08, 0.02
FLOOR_DB = 35.0
"""Below the loudest block, a block is silence."""
ZERO_CROSSINGS, KAISER_BETA = 10, 5.0
"""Of the low-pass filter, as SciPy's `resample_poly` designs it."""


class VoiceEncoder:
    """Implements `contract.model.feed_forward.FeedForward`.

    Raises:
        ConfigError: (on construction) the checkpoint lacks weights of the encoder.
    """

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        self._encoder = MimiEncoder(checkpoint, device)

    def key(self, inputs: PocketEncoderInput) -> bytes:
        """Hash of the samples and their rate."""
        about = f"at {inputs.sample_rate}".encode()
        return hashlib.sha256(about + inputs.samples.tobytes()).digest()

    def run(
        self, batch: Sequence[PocketEncoderInput]
    ) -> Sequence[Mapping[str, Payload] | CantataError]:
        """Encode recordings one after the other: their lengths differ."""
        return [self._encode(inputs) for inputs in batch]

    def _encode(self, inputs: PocketEncoderInput) -> Mapping[str, Payload] | CantataError:
        rate, frame = self._encoder.sample_rate, self._encoder.samples_per_frame
        if not inputs.samples.any():
            return InvalidRequest("the recording is silent", "ref_audio")
        heard = torch.from_numpy(inputs.samples[: int(MAX_S * inputs.sample_rate)].copy())
        sound = end_in_pause(resampled(heard, inputs.sample_rate, rate), rate)
        whole = functional.pad(sound, (0, -len(sound) % frame))
        return {"voice": Rows(np.asarray(self._encoder.encode(whole).numpy(), np.float32))}


def resampled(samples: torch.Tensor, rate: int, wanted: int) -> torch.Tensor:
    """Resample by a low-pass filter of which each output sample takes its part.

    Args:
        samples: [N] float32.
        rate: Hz.
        wanted: Hz.

    Returns:
        [N * wanted / rate], rounded up.
    """
    common = math.gcd(rate, wanted)
    up, down = wanted // common, rate // common
    if up == down:
        return samples
    half = ZERO_CROSSINGS * max(up, down)
    taps = np.sinc(np.arange(-half, half + 1) / max(up, down)) * np.kaiser(
        2 * half + 1, KAISER_BETA
    )
    taps *= up / taps.sum()
    # Of each `up` outputs, every one has a kernel of its own over the same inputs.
    first, last = -(half // up), (half + (up - 1) * down) // up
    places = half + np.arange(up)[:, None] * down - np.arange(first, last + 1) * up
    inside = (places >= 0) & (places <= 2 * half)
    kernels = np.where(inside, taps[places.clip(0, 2 * half)], 0.0).astype(np.float32)
    length = -(-len(samples) * up // down)
    groups = -(-length // up)
    padded = functional.pad(samples, (-first, groups * down + last - len(samples)))
    made = functional.conv1d(padded[None, None], torch.from_numpy(kernels)[:, None], stride=down)
    return made[0, :, :groups].t().reshape(-1)[:length].contiguous()


def end_in_pause(samples: torch.Tensor, rate: int) -> torch.Tensor:
    """Cut the silence behind a recording, fade it out and append a pause of fixed length.

    A voice that ends in mid-word makes the model go on with the word, a long silence delays it.

    Args:
        samples: [N] float32.
        rate: Hz.
    """
    block = max(1, int(BLOCK_S * rate))
    blocks = len(samples) // block
    if not blocks:
        return samples
    loudness = samples[: blocks * block].view(blocks, block).square().mean(dim=1).sqrt()
    decibels = 20 * torch.log10(loudness + 1e-12)
    loud = (decibels > decibels.max() - FLOOR_DB).nonzero()
    kept = samples[: (int(loud[-1]) + 1) * block].clone()
    fade = min(int(FADE_S * rate), len(kept))
    kept[-fade:] *= torch.linspace(1, 0, fade)
    return functional.pad(kept, (0, int(PAUSE_S * rate)))
