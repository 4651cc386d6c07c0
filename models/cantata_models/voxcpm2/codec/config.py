"""Reads the autoencoder's shapes from a checkpoint's config.json.

Source: the package `voxcpm`, modules/audiovae/audio_vae_v2.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_models.voxcpm2.config import read_config

STEM = "audiovae"
"""How its files of weights begin."""
SCALE_AND_BIAS = ("scale_bias", "scale_bias_init")
"""Ways to condition the decoder on its rate; the second differs in training alone."""


@dataclass(frozen=True, slots=True)
class CodecConfig:
    """The autoencoder's shapes."""

    encoder_dim: int
    """Channels of its first convolution; each stage doubles them."""
    encoder_rates: tuple[int, ...]
    decoder_dim: int
    """Channels in front of its first stage; each stage halves them."""
    decoder_rates: tuple[int, ...]
    latent_dim: int
    patch_size: int
    """Latents of a patch."""
    input_rate: int
    """Hz, of recordings."""
    sample_rate: int
    """Hz, of what it decodes."""
    rate_buckets: tuple[int, ...] | None
    """Hz: between which rates the decoder tells output rates apart. None: it knows one."""

    @property
    def input_samples(self) -> int:
        """Samples of a recording in a patch."""
        return self.patch_size * math.prod(self.encoder_rates)

    @property
    def samples_per_patch(self) -> int:
        """Samples decoded from a patch."""
        return self.patch_size * math.prod(self.decoder_rates)

    @property
    def patch_seconds(self) -> float:
        """How long a patch is heard."""
        return self.samples_per_patch / self.sample_rate

    @property
    def rate_row(self) -> int | None:
        """Row of the tables that condition the decoder on its rate; None: there are none."""
        return (
            None if self.rate_buckets is None else bisect_left(self.rate_buckets, self.sample_rate)
        )


def load_codec_config(checkpoint: Path) -> CodecConfig:
    """Read the codec's part of a checkpoint's config.json.

    Raises:
        ConfigError: there is none, or its decoder is of a kind that is not published.
    """
    whole = read_config(checkpoint)
    fields = whole.section("audio_vae_config")
    _check_kind(fields)
    return CodecConfig(
        encoder_dim=fields.size("encoder_dim", 128),
        encoder_rates=fields.integers("encoder_rates", default=(2, 5, 8, 8)),
        decoder_dim=fields.size("decoder_dim", 2048),
        decoder_rates=fields.integers("decoder_rates", default=(8, 6, 5, 2, 2, 2)),
        latent_dim=fields.size("latent_dim", 64),
        patch_size=whole.size("patch_size", 4),
        input_rate=fields.size("sample_rate", 16_000),
        sample_rate=fields.size("out_sample_rate", 48_000),
        rate_buckets=_rate_buckets(fields),
    )


def _rate_buckets(fields: JsonFields) -> tuple[int, ...] | None:
    """Return the boundaries that a checkpoint names or that are usual; null means none."""
    key = "sr_bin_boundaries"
    if fields.values.get(key, ...) is None:
        return None
    return fields.integers(key, (20_000, 30_000, 40_000))


def _check_kind(fields: JsonFields) -> None:
    for key, default, valid in (
        ("depthwise", True, True),
        ("use_noise_block", False, False),
        ("cond_out_layer", False, False),
    ):
        if fields.get(key, bool, default=default) is not valid:
            raise ConfigError(f"{fields.where}: {key} must be {str(valid).lower()}")
    kind = fields.get("cond_type", str, default=SCALE_AND_BIAS[0])
    if kind not in SCALE_AND_BIAS:
        raise ConfigError(f"{fields.where}: cond_type is {kind!r}; valid: {list(SCALE_AND_BIAS)}")
