"""The decoder's values from speech_tokenizer/config.json."""

from __future__ import annotations

import math
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_models.qwen3_tts.config import TOKENIZER_12HZ

FOLDER = "speech_tokenizer"
"""Subfolder of a checkpoint."""


@dataclass(frozen=True, slots=True)
class DecoderConfig:
    """The decoder's sizes."""

    sample_rate: int
    """Hz."""
    samples_per_frame: int
    codebooks: int
    codebook_size: int
    codebook_dim: int
    """Width of a frame after the quantiser; codebook entries are half as wide."""
    latent_dim: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    window: int
    """Number of frames that a frame attends to, including itself."""
    rope_theta: float
    rms_norm_eps: float
    upsampling_ratios: tuple[int, ...]
    """Rates of the stages before the wave stages."""
    decoder_dim: int
    """Width of the first wave stage; each stage halves it."""
    upsample_rates: tuple[int, ...]
    """Rates of the wave stages."""


def load_decoder_config(checkpoint: Path) -> DecoderConfig:
    """Read the decoder's config from a checkpoint's speech tokenizer.

    Raises:
        ConfigError: the file or a value is missing, a value is wrong, or the tokenizer is another.
    """
    root = read_json(checkpoint / FOLDER / "config.json")
    model_type = root.get("model_type", str)
    if model_type != TOKENIZER_12HZ:
        raise ConfigError(
            f"{root.where}: model_type {model_type!r} is not served; valid: {TOKENIZER_12HZ!r}"
        )
    decoder = root.section("decoder_config")
    hidden_size, heads = decoder.get("hidden_size", int), decoder.get("num_attention_heads", int)
    config = DecoderConfig(
        sample_rate=root.get("output_sample_rate", int),
        samples_per_frame=root.get("decode_upsample_rate", int),
        codebooks=decoder.get("num_quantizers", int),
        codebook_size=decoder.get("codebook_size", int),
        codebook_dim=decoder.get("codebook_dim", int),
        latent_dim=decoder.get("latent_dim", int),
        hidden_size=hidden_size,
        layers=decoder.get("num_hidden_layers", int),
        heads=heads,
        kv_heads=decoder.get("num_key_value_heads", int),
        head_dim=decoder.get("head_dim", int, hidden_size // heads),
        intermediate_size=decoder.get("intermediate_size", int),
        window=decoder.get("sliding_window", int),
        rope_theta=decoder.get("rope_theta", float),
        rms_norm_eps=decoder.get("rms_norm_eps", float),
        upsampling_ratios=decoder.integers("upsampling_ratios"),
        decoder_dim=decoder.get("decoder_dim", int),
        upsample_rates=decoder.integers("upsample_rates"),
    )
    _check_served(config, decoder)
    return config


def _check_served(config: DecoderConfig, fields: JsonFields) -> None:
    output = math.prod((*config.upsampling_ratios, *config.upsample_rates))
    if output != config.samples_per_frame:
        raise ConfigError(
            f"{fields.where}: upsample_rates and upsampling_ratios make {output} samples a frame, "
            f"decode_upsample_rate says {config.samples_per_frame}"
        )
    if fields.get("attention_bias", bool, False):
        raise ConfigError(f"{fields.where}: attention_bias is not served; valid: false")
    activation = fields.get("hidden_act", str, "silu")
    if activation != "silu":
        raise ConfigError(f"{fields.where}: hidden_act {activation!r}; valid: 'silu'")
