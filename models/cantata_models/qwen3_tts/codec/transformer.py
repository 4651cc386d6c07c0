"""The decoder's transformer, narrower than the layers around it.

Letters: B rows, T frames.
"""

from __future__ import annotations

import torch

from cantata_layers.conv_cache import ConvCache
from cantata_layers.linear import Linear
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_layers.weights import Weights
from cantata_models.qwen3_tts.codec.config import DecoderConfig


class ProjectedTransformer:
    """[B, T, latent] -> [B, T, latent]."""

    def __init__(
        self, weights: Weights, name: str, config: DecoderConfig, device: torch.device
    ) -> None:
        size, latent = config.hidden_size, config.latent_dim
        self._into = Linear.load(weights, f"{name}.input_proj", latent, size, bias=True)
        self._transformer = SlidingTransformer(weights, name, config, device)
        self._out = Linear.load(weights, f"{name}.output_proj", size, latent, bias=True)

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        return self._out(self._transformer(self._into(x), past))
