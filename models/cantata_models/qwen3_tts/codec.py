"""Decodes frames to audio: a causal decoder with explicit streaming state per slot.

It consists of the quantizer, a convolution, a transformer over a window of frames, and stages that
each raise the rate, to 1920 samples per frame in the published tokenizer (Qwen3-TTS,
arXiv:2601.15621). No layer looks ahead, so every frame yields its samples at once, and streaming
gives the same result as decoding the whole utterance.

Letters: B rows, T frames, Q codebooks, L positions, C channels.
"""

from __future__ import annotations

import math
from pathlib import Path

import msgspec
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
from cantata_layers.exact_layers import Linear
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.sliding_transformer import SlidingTransformer
from cantata_layers.weights import ReadWeights, Weights
from cantata_models.qwen3_tts.config import TOKENIZER_12HZ

FOLDER = "speech_tokenizer"
"""Subfolder of a checkpoint."""


class DecoderConfig(msgspec.Struct, frozen=True):
    """The decoder's sizes."""

    sample_rate: int = msgspec.field(name="output_sample_rate")
    """Hz."""
    samples_per_frame: int = msgspec.field(name="decode_upsample_rate")
    codebooks: int = msgspec.field(name="num_quantizers")
    codebook_size: int
    codebook_dim: int
    """Width of a frame after the quantizer; codebook entries are half as wide."""
    latent_dim: int
    hidden_size: int
    layers: int = msgspec.field(name="num_hidden_layers")
    heads: int = msgspec.field(name="num_attention_heads")
    kv_heads: int = msgspec.field(name="num_key_value_heads")
    head_dim: int
    intermediate_size: int
    window: int = msgspec.field(name="sliding_window")
    """Number of frames that a frame attends to, including itself."""
    rope_theta: float
    rms_norm_eps: float
    upsampling_ratios: tuple[int, ...]
    """Rates of the stages before the wave stages."""
    decoder_dim: int
    """Width of the first wave stage; each stage halves it."""
    upsample_rates: tuple[int, ...]
    """Rates of the wave stages."""

    def __post_init__(self) -> None:
        output = math.prod((*self.upsampling_ratios, *self.upsample_rates))
        if output != self.samples_per_frame:
            raise ValueError(
                f"upsample_rates and upsampling_ratios make {output} samples a frame, "
                f"decode_upsample_rate says {self.samples_per_frame}"
            )


def load_decoder_config(checkpoint: Path) -> DecoderConfig:
    """Read the decoder's config from a checkpoint's speech tokenizer.

    Raises:
        ConfigError: the file or a value is missing, a value is wrong, or the tokenizer is another.
    """
    root = read_json(checkpoint / FOLDER / "config.json")
    root.expect("model_type", TOKENIZER_12HZ)
    decoder = root.section("decoder_config")
    decoder.expect("attention_bias", False, default=False)
    decoder.expect("hidden_act", "silu", default="silu")
    usual = {"head_dim": decoder.size("hidden_size") // decoder.size("num_attention_heads")}
    return JsonFields({**root.values, **usual, **decoder.values}, decoder.where).read(DecoderConfig)


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


USAGE_FLOOR = 1e-5


class SplitDequantizer:
    """[B, T, Q] codes -> [B, T, codebook_dim]. Sums the first codebook and the rest separately."""

    def __init__(self, weights: Weights, name: str, config: DecoderConfig) -> None:
        inner = config.codebook_dim // 2
        self._tables, self._projections = [], []
        for part, count in (("rvq_first", 1), ("rvq_rest", config.codebooks - 1)):
            books = [
                self._read_entries(weights, f"{name}.{part}.vq.layers.{index}._codebook", config)
                for index in range(count)
            ]
            self._tables.append(books)
            projection = weights.take(
                f"{name}.{part}.output_proj.weight", config.codebook_dim, inner, 1
            )
            self._projections.append(Linear(projection[..., 0]))

    @staticmethod
    def _read_entries(weights: Weights, name: str, config: DecoderConfig) -> torch.Tensor:
        usage = weights.take(f"{name}.cluster_usage", config.codebook_size)
        shape = (config.codebook_size, config.codebook_dim // 2)
        total = weights.take(f"{name}.embedding_sum", *shape)
        return total / usage.clamp(min=USAGE_FLOOR)[:, None]

    def __call__(self, codes: torch.Tensor) -> torch.Tensor:
        parts, book = [], 0
        for tables, projection in zip(self._tables, self._projections, strict=True):
            total = tables[0][codes[..., book]]
            for offset, table in enumerate(tables[1:], start=1):
                total = total + table[codes[..., book + offset]]
            parts.append(projection(total))
            book += len(tables)
        return parts[0] + parts[1]


class Qwen3TtsWaveStage:
    """Raises the rate, halves the width, then applies residual units with three dilations."""

    def __init__(self, weights: Weights, name: str, size: int, rate: int) -> None:
        half = size // 2
        self._snake = SnakeBeta(weights, f"{name}.block.0", size)
        self._upsample = CausalUpsample(weights, f"{name}.block.1.conv", size, half, rate, 2 * rate)
        self._units = [
            ResidualUnit(weights, f"{name}.block.{index}", half, dilation)
            for index, dilation in enumerate(DILATIONS, start=2)
        ]

    def __call__(self, x: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._upsample(self._snake(x), past)
        for unit in self._units:
            x = unit(x, past)
        return x


class Qwen3TtsDecoder(CausalDecoder):
    """The published speech tokenizer as a decoder of codes.

    Raises:
        ConfigError: (on construction) the folder holds no such checkpoint.
    """

    recordable = True

    def __init__(self, checkpoint: Path, device: torch.device, read: ReadWeights = Weights) -> None:
        config = load_decoder_config(checkpoint)
        self.sample_rate, self.channels = config.sample_rate, 1
        self.samples_per_frame = config.samples_per_frame
        self.num_codebooks, self.codebook_size = config.codebooks, config.codebook_size
        super().__init__(torch.zeros(1, 1, config.codebooks, dtype=torch.int64, device=device))
        weights = read(checkpoint / FOLDER, "decoder.", device)
        latent, size = config.latent_dim, config.decoder_dim
        self._dequantize = SplitDequantizer(weights, "quantizer", config)
        self._into = CausalConv(weights, "pre_conv.conv", config.codebook_dim, latent, 3)
        self._transformer = ProjectedTransformer(weights, "pre_transformer", config, device)
        self._upsamplers = [
            (
                CausalUpsample(weights, f"upsample.{i}.0.conv", latent, latent, ratio, ratio),
                CausalConvNextBlock(weights, f"upsample.{i}.1", latent),
            )
            for i, ratio in enumerate(config.upsampling_ratios)
        ]
        self._widen = CausalConv(weights, "decoder.0.conv", latent, size, 7)
        self._stages = [
            Qwen3TtsWaveStage(weights, f"decoder.{i}", size >> (i - 1), rate)
            for i, rate in enumerate(config.upsample_rates, start=1)
        ]
        last = len(self._stages) + 1
        narrow = size >> len(self._stages)
        self._snake = SnakeBeta(weights, f"decoder.{last}", narrow)
        self._wave = CausalConv(weights, f"decoder.{last + 1}.conv", narrow, 1, 7)

    def _run(self, codes: torch.Tensor, past: ConvCache) -> torch.Tensor:
        x = self._into(self._dequantize(codes), past)
        x = self._transformer(x, past)
        for upsample, refine in self._upsamplers:
            x = refine(upsample(x, past), past)
        x = self._widen(x, past)
        for stage in self._stages:
            x = stage(x, past)
        return self._wave(self._snake(x), past).clamp(-1.0, 1.0)
