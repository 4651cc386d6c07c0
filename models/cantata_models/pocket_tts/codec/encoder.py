"""Encodes recordings to frames, which the talker's rows of a voice are made of.

Letters: N samples, K frames, L positions, C channels, S positions of a frame.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.activations import elu
from cantata_layers.causal_convolutions import CausalConv
from cantata_layers.conv_cache import ConvCache
from cantata_layers.descript_codec import CausalDownsample
from cantata_layers.linear import Linear
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.pocket_tts.codec.layers import (
    MIMI,
    WindowedTransformer,
    load_seanet_units,
    read_part,
)
from cantata_models.pocket_tts.config import load_config
from cantata_models.pocket_tts.sizes import SeanetSizes

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
