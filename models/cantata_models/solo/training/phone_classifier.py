"""A small phone classifier: it aligns the data and scores the decoder's output."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
import torch
from torch import nn
from torch.nn import functional

from cantata_models.solo.config import SoloConfig
from cantata_models.solo.networks.codec_encoder import LogMel
from cantata_models.solo.networks.layers import ConvNextBlock

CHANNELS = 128
BLOCKS = 4
KERNEL = 7
HOPS_PER_SLOT = 2

Scores = npt.NDArray[np.float32]


class PhoneClassifier(nn.Module):
    """[B, 2 S, mels] log-mel without the level -> [B, S, phones] logits."""

    def __init__(self, config: SoloConfig) -> None:
        super().__init__()
        codec = config.codec
        self.mel = LogMel(codec.mels, codec.fft_size, codec.hop, codec.sample_rate)
        self.into = nn.Linear(HOPS_PER_SLOT * codec.mels, CHANNELS)
        self.blocks = nn.ModuleList(
            ConvNextBlock(CHANNELS, 2 * CHANNELS, KERNEL) for _ in range(BLOCKS)
        )
        self.out = nn.Linear(CHANNELS, len(config.phones))
        self.register_buffer("log_prior", torch.zeros(len(config.phones)))

    def features(self, samples: torch.Tensor) -> torch.Tensor:
        """[N] samples -> [2 S, mels], minus the speaker's average."""
        mel: torch.Tensor = self.mel(samples[None])[0]
        return mel - mel.mean(dim=0)

    def hidden(self, features: torch.Tensor) -> list[torch.Tensor]:
        """[B, 2 S, mels] -> [B, S, CHANNELS] for every layer, the last layer at the end."""
        batch, hops, _ = features.shape
        layers = [self.into(features.reshape(batch, hops // HOPS_PER_SLOT, -1))]
        for block in self.blocks:
            layers.append(block(layers[-1]))
        return layers

    def forward(self, features: torch.Tensor) -> torch.Tensor:
        return torch.as_tensor(self.out(self.hidden(features)[-1]))

    @torch.inference_mode()
    def scores(self, samples: torch.Tensor) -> Scores:
        """[N] samples -> [S, phones]: log posterior over log prior."""
        posterior = functional.log_softmax(self(self.features(samples)[None])[0], dim=-1)
        scaled: Scores = (posterior - self.get_buffer("log_prior")).numpy()
        return scaled
