"""Decodes frames to sound: a causal decoder with explicit streaming state per slot.

It consists of the mean of the codes' embeddings, a transformer over a window of frames, and stages
that each raise the rate, to 1920 samples for a frame (Qwen3-Omni, arXiv:2509.17765). The wave
stages lag: n frames have 1920 n - 555 samples, in front of which the stream has 555 of silence.
Streaming gives the same samples as decoding the whole.

Letters: B rows, T frames, Q codebooks, L positions, C channels.
"""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.causal_convolutions import (
    DILATIONS,
    CausalConv,
    CausalUpsample,
    ConvNextBlock,
    ResidualUnit,
    Snake,
)
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.conv_cache import ConvCache
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_layers.weights import Weights
from cantata_models.qwen3_omni.code2wav.lead import Lead
from cantata_models.qwen3_omni.config.checkpoint import CODE2WAV, load_speech_config
from cantata_models.qwen3_omni.config.code2wav import SAMPLE_RATE


class Qwen3OmniWaveStage:
    """Raises the rate, halves the width, then applies residual units with three dilations."""

    def __init__(self, weights: Weights, name: str, size: int, rate: int) -> None:
        half = size // 2
        self.rate = rate
        self._snake = Snake(weights, f"{name}.block.0", size)
        self._upsample = CausalUpsample(weights, f"{name}.block.1.conv", size, half, rate, 2 * rate)
        self._units = [
            ResidualUnit(weights, f"{name}.block.{index}", half, dilation)
            for index, dilation in enumerate(DILATIONS, start=2)
        ]

    def __call__(self, x: torch.Tensor, lead: Lead, past: ConvCache) -> tuple[torch.Tensor, Lead]:
        lead = lead.raised(self.rate, lags=True)
        x = lead.silenced(self._upsample(self._snake(x), past))
        for unit in self._units:
            x = lead.silenced(unit(x, past))
        return x, lead


class Code2Wav(CausalDecoder):
    """A decoder of codes; its streams begin with silence.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    sample_rate, channels = SAMPLE_RATE, 1
    recordable = True

    def __init__(self, checkpoint: Path, device: torch.device) -> None:
        config = load_speech_config(checkpoint)[1].code2wav
        self.samples_per_frame = config.samples_per_frame
        self.num_codebooks, self.codebook_size = config.codebooks, config.codebook_size
        super().__init__(torch.zeros(1, 1, config.codebooks, dtype=torch.int64, device=device))
        weights = Weights(checkpoint, CODE2WAV, device)
        hidden, size = config.hidden_size, config.decoder_dim
        entries = config.codebooks * config.codebook_size
        self._table = weights.take("code_embedding.weight", entries, hidden)
        self._first = torch.arange(config.codebooks, device=device) * config.codebook_size
        self._transformer = SlidingTransformer(weights, "pre_transformer", config, device)
        self._ratios = config.upsampling_ratios
        self._upsamplers = [
            (
                CausalUpsample(weights, f"upsample.{i}.0.conv", hidden, hidden, ratio, ratio),
                ConvNextBlock(weights, f"upsample.{i}.1", hidden),
            )
            for i, ratio in enumerate(config.upsampling_ratios)
        ]
        self._widen = CausalConv(weights, "decoder.0.conv", hidden, size, 7)
        self._stages = [
            Qwen3OmniWaveStage(weights, f"decoder.{i}", size >> (i - 1), rate)
            for i, rate in enumerate(config.upsample_rates, start=1)
        ]
        last, narrow = len(self._stages) + 1, size >> len(self._stages)
        self._snake = Snake(weights, f"decoder.{last}", narrow)
        self._wave = CausalConv(weights, f"decoder.{last + 1}.conv", narrow, 1, 7)

    @property
    def leading_silence(self) -> int:
        """Samples of silence in front of a stream's sound."""
        lead = Lead.of(torch.zeros(0))
        for stage in self._stages:
            lead = lead.raised(stage.rate, lags=True)
        return lead.lag

    def _run(self, codes: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._transformer(self._embedded(codes), past)
        lead = Lead.of(past.positions)
        for ratio, (upsample, refine) in zip(self._ratios, self._upsamplers, strict=True):
            x = refine(upsample(x, past), past)
            lead = lead.raised(ratio, lags=False)
        x = self._widen(x, past)
        for stage in self._stages:
            x, lead = stage(x, lead, past)
        return lead.silenced(self._wave(self._snake(x), past).clamp(-1.0, 1.0))

    def _embedded(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] -> [B, T, C]: summed in a fixed order."""
        total = self._table[codes[..., 0]]
        for book in range(1, self.num_codebooks):
            total = total + self._table[codes[..., book] + self._first[book]]
        return total / self.num_codebooks
