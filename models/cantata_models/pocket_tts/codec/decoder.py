"""Decodes latents to sound: causal, with explicit streaming state per slot.

No layer looks ahead, so every frame yields its samples at once, and streaming gives the same result
as decoding the whole.

Letters: B rows, T frames, E numbers of a latent, L positions, C channels, S positions of a frame.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.activations import elu
from cantata_layers.causal_convolutions import CausalConv, CausalUpsample
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.conv_cache import ConvCache
from cantata_layers.linear import Linear
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.pocket_tts.codec.layers import (
    MIMI,
    WindowedTransformer,
    load_seanet_units,
    read_part,
)
from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.inputs import FRAME_COLUMNS
from cantata_models.pocket_tts.sizes import SeanetSizes

FADES_IN = 200
"""The first 1 / 200 of a second grows from silence, as in the published program."""


class FrameSpread:
    """A transposed convolution of each channel by itself. [B, T, C] -> [B, T * S, C]."""

    def __init__(self, weights: Weights, name: str, size: int, stride: int) -> None:
        taps = weights.take(f"{name}.weight", size, 1, 2 * stride)[:, 0].t().contiguous()
        self._own, self._earlier = taps[:stride], taps[stride:]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        before = past.extend(x, 1)[:, :-1]
        spread = x[:, :, None] * self._own + before[:, :, None] * self._earlier
        return spread.flatten(1, 2)


class RaisingStage:
    """Raises the rate, halves the channels, then applies units."""

    def __init__(
        self, weights: Weights, first: int, size: int, ratio: int, sizes: SeanetSizes
    ) -> None:
        half = size // 2
        self._upsample = CausalUpsample(
            weights, f"decoder.model.{first}.convtr", size, half, ratio, 2 * ratio
        )
        self._units = load_seanet_units(weights, "decoder.model", first + 1, half, sizes)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(elu(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class MimiDecoder(CausalDecoder):
    """The published codec as a decoder of latents.

    A frame is a latent and what the talker puts behind it.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    recordable = True
    channels = 1

    def __init__(
        self, checkpoint: Path, device: torch.device, read: ReadWeights = read_part
    ) -> None:
        config = load_config(checkpoint)
        mimi, sizes = config.mimi, config.mimi.decoder
        self.sample_rate, self.samples_per_frame = mimi.sample_rate, mimi.samples_per_frame
        self.latent_size = mimi.latent + FRAME_COLUMNS
        self._latent = mimi.latent
        super().__init__(torch.zeros(1, 1, self.latent_size, device=device))
        statistics = read(config.weights, "flow_lm.emb_", device)
        self._mean = statistics.take("mean", mimi.latent)
        self._deviation = statistics.take("std", mimi.latent)
        weights = read(config.weights, MIMI, device)
        widen = weights.take("quantizer.output_proj.weight", sizes.size, mimi.latent, 1)
        self._widen = Linear(widen[:, :, 0])
        self._spread = FrameSpread(weights, "upsample.convtr.convtr", sizes.size, mimi.stride)
        self._transformer = WindowedTransformer(
            weights, "decoder_transformer", config.mimi.decoder_transformer, mimi.stride
        )
        width, number = sizes.filters << len(sizes.ratios), 0
        self._first = CausalConv(weights, "decoder.model.0.conv", sizes.size, width, sizes.kernel)
        self._stages: list[RaisingStage] = []
        for ratio in sizes.ratios:
            # An activation has a number too.
            self._stages.append(RaisingStage(weights, number + 2, width, ratio, sizes))
            width, number = width // 2, number + 2 + sizes.units
        self._last = CausalConv(
            weights, f"decoder.model.{number + 2}.conv", width, 1, sizes.last_kernel
        )
        samples = mimi.sample_rate // FADES_IN
        self._fade = torch.ones(mimi.samples_per_frame, 1, device=device)
        self._fade[:samples, 0] = torch.linspace(0, 1, samples, device=device)

    def _run(self, frames: torch.Tensor, past: ConvCache) -> torch.Tensor:
        latents = frames[..., : self._latent] * self._deviation + self._mean
        x = self._spread(self._widen(latents), past)
        x = self._first(self._transformer(x, past), past)
        for stage in self._stages:
            x = stage(x, past)
        samples = self._last(elu(x), past).clamp(-1.0, 1.0)
        begins = (past.positions == 0)[:, None, None]
        first = samples[:, : self.samples_per_frame]
        first *= torch.where(begins, self._fade, 1.0)
        return samples


def load_decoder(checkpoint: Path, device: torch.device) -> MimiDecoder:
    """Return the checkpoint's streaming decoder in fp32."""
    return MimiDecoder(checkpoint, device)
