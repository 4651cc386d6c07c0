"""Where a stream's sound begins, at every rate of the decoder.

The published transposed convolutions of the wave stages are cut at both ends: with r outputs for
each input, the first r are dropped, so that every output needs the input after its own. Streamed,
each of them lags by one input, and what a layer makes before the stream's beginning must be zero,
as the padding of the published convolutions is.

Letters: B rows, L positions, C channels.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

import torch

from cantata_layers.causal_convolutions import (
    DILATIONS,
    CausalConv,
    CausalConvNextBlock,
    CausalUpsample,
    ConvCache,
    ResidualUnit,
    SnakeBeta,
)
from cantata_layers.causal_decoder import CausalDecoder
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_layers.weights import Weights
from cantata_models.qwen3_omni.config import CODE2WAV, SAMPLE_RATE, load_speech_config


@dataclass(frozen=True, slots=True)
class Lead:
    """Positions of one call that lie before the beginning of their streams."""

    frames: torch.Tensor
    """[B] int64: frames of each stream before this call."""
    begins: bool
    """Whether a stream may begin in this call. WHY: every lag is shorter than a frame, so no other
    call has such positions."""
    lag: int = 0
    """Positions by which a stream begins late."""
    positions_per_frame: int = 1

    @classmethod
    def of(cls, frames: torch.Tensor) -> Lead:
        """In front of all layers."""
        if frames.device.type != "cpu":
            # Reading a value would make the host wait; the masks of later calls change nothing.
            return cls(frames, begins=True)
        return cls(frames, begins=bool((frames == 0).any()))

    def raised(self, rate: int, *, lags: bool) -> Lead:
        """The same behind a layer that makes `rate` positions of one.

        Args:
            rate: outputs for each input.
            lags: whether it needs the input after.
        """
        return replace(
            self,
            lag=(self.lag + lags) * rate,
            positions_per_frame=self.positions_per_frame * rate,
        )

    def silenced(self, x: torch.Tensor) -> torch.Tensor:
        """[B, L, C] -> the same with zeros before the beginning of each stream."""
        if not self.begins or not self.lag:
            return x
        first = self.lag - self.frames * self.positions_per_frame
        places = torch.arange(x.shape[1], device=x.device)
        return x.masked_fill((places < first[:, None])[..., None], 0.0)


class Qwen3OmniWaveStage:
    """Raises the rate, halves the width, then applies residual units with three dilations."""

    def __init__(self, weights: Weights, name: str, size: int, rate: int) -> None:
        half = size // 2
        self.rate = rate
        self._snake = SnakeBeta(weights, f"{name}.block.0", size)
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
                CausalConvNextBlock(weights, f"upsample.{i}.1", hidden),
            )
            for i, ratio in enumerate(config.upsampling_ratios)
        ]
        self._widen = CausalConv(weights, "decoder.0.conv", hidden, size, 7)
        self._stages = [
            Qwen3OmniWaveStage(weights, f"decoder.{i}", size >> (i - 1), rate)
            for i, rate in enumerate(config.upsample_rates, start=1)
        ]
        last, narrow = len(self._stages) + 1, size >> len(self._stages)
        self._snake = SnakeBeta(weights, f"decoder.{last}", narrow)
        self._wave = CausalConv(weights, f"decoder.{last + 1}.conv", narrow, 1, 7)

    @property
    def leading_silence(self) -> int:
        """Samples of silence in front of a stream's sound."""
        lead = Lead.of(torch.zeros(0))
        for stage in self._stages:
            lead = lead.raised(stage.rate, lags=True)
        return lead.lag

    def _run(self, codes: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._transformer(self._embed(codes), past)
        lead = Lead.of(past.positions)
        for ratio, (upsample, refine) in zip(self._ratios, self._upsamplers, strict=True):
            x = refine(upsample(x, past), past)
            lead = lead.raised(ratio, lags=False)
        x = self._widen(x, past)
        for stage in self._stages:
            x, lead = stage(x, lead, past)
        return lead.silenced(self._wave(self._snake(x), past).clamp(-1.0, 1.0))

    def _embed(self, codes: torch.Tensor) -> torch.Tensor:
        """[B, T, Q] -> [B, T, C]: summed in a fixed order."""
        total = self._table[codes[..., 0]]
        for book in range(1, self.num_codebooks):
            total = total + self._table[codes[..., book] + self._first[book]]
        return total / self.num_codebooks


def load_decoder(checkpoint: Path, device: torch.device) -> Code2Wav:
    """Return the checkpoint's streaming decoder in fp32.

    Raises:
        ConfigError: the folder holds no speaking checkpoint.
    """
    return Code2Wav(checkpoint, device)
