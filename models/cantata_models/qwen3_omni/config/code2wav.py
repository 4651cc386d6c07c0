"""The decoder's part of config.json."""

from __future__ import annotations

import math
from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields

SAMPLE_RATE = 24_000
FRAMES_PER_SECOND = 12.5


@dataclass(frozen=True, slots=True)
class Code2WavConfig:
    """Sizes; implements `cantata_layers.sliding_transformer.SlidingSizes`."""

    codebooks: int
    codebook_size: int
    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    intermediate_size: int
    window: int
    rope_theta: float
    rms_norm_eps: float
    upsampling_ratios: tuple[int, ...]
    """Rates of the stages before the wave stages."""
    decoder_dim: int
    """Width before the first wave stage; each halves it."""
    upsample_rates: tuple[int, ...]
    """Rates of the wave stages."""

    @property
    def samples_per_frame(self) -> int:
        """At `SAMPLE_RATE`."""
        return math.prod((*self.upsampling_ratios, *self.upsample_rates))


def read_code2wav(fields: JsonFields) -> Code2WavConfig:
    """Read `code2wav_config`.

    Raises:
        ConfigError: a value is missing, of the wrong type or not served.
    """
    hidden_size, heads = fields.get("hidden_size", int), fields.get("num_attention_heads", int)
    config = Code2WavConfig(
        codebooks=fields.get("num_quantizers", int),
        codebook_size=fields.get("codebook_size", int),
        hidden_size=hidden_size,
        layers=fields.get("num_hidden_layers", int),
        heads=heads,
        kv_heads=fields.get("num_key_value_heads", int),
        head_dim=fields.get("head_dim", int, hidden_size // heads),
        intermediate_size=fields.get("intermediate_size", int),
        window=fields.get("sliding_window", int),
        rope_theta=_rope_theta(fields),
        rms_norm_eps=fields.get("rms_norm_eps", float),
        upsampling_ratios=fields.integers("upsampling_ratios"),
        decoder_dim=fields.get("decoder_dim", int),
        upsample_rates=fields.integers("upsample_rates"),
    )
    _check_served(config, fields)
    return config


def _rope_theta(fields: JsonFields) -> float:
    """From where either version of the format has it."""
    parameters = fields.section("rope_parameters")
    return (parameters if fields.items("rope_parameters") else fields).get("rope_theta", float)


def _check_served(config: Code2WavConfig, fields: JsonFields) -> None:
    output = config.samples_per_frame * FRAMES_PER_SECOND
    if output != SAMPLE_RATE:
        raise ConfigError(
            f"{fields.where}: upsample_rates and upsampling_ratios make {output:g} samples a "
            f"second, not {SAMPLE_RATE}"
        )
    if fields.get("attention_bias", bool, False):
        raise ConfigError(f"{fields.where}: attention_bias is not served; valid: false")
    activation = fields.get("hidden_act", str, "silu")
    if activation != "silu":
        raise ConfigError(f"{fields.where}: hidden_act {activation!r}; valid: 'silu'")
