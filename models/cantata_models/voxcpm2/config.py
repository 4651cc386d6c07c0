"""Reads the config.json of a published checkpoint.

The format has no `model_type`; `"architecture": "voxcpm2"` names the model. Source: the package
`voxcpm`, model/voxcpm2.py and modules/minicpm4/config.py.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from dataclasses import dataclass, replace
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import check_shared_heads

STEM = "audiovae"
"""How its files of weights begin."""


SCALE_AND_BIAS = ("scale_bias", "scale_bias_init")
"""Ways to condition the decoder on its rate; the second differs in training alone."""


@dataclass(frozen=True, slots=True)
class VoxCpm2CodecConfig:
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


def load_codec_config(checkpoint: Path) -> VoxCpm2CodecConfig:
    """Read the codec's part of a checkpoint's config.json. Raises ConfigError: there is none, or
    its decoder is of a kind that is not published."""
    whole = read_config(checkpoint)
    fields = whole.section("audio_vae_config")
    _check_kind(fields)
    return VoxCpm2CodecConfig(
        encoder_dim=fields.size("encoder_dim", 128),
        encoder_rates=fields.integers("encoder_rates", default=(2, 5, 8, 8)),
        decoder_dim=fields.size("decoder_dim", 2048),
        decoder_rates=fields.integers("decoder_rates", default=(8, 6, 5, 2, 2, 2)),
        latent_dim=fields.size("latent_dim", 64),
        patch_size=whole.size("patch_size", 4),
        input_rate=fields.size("sample_rate", 16_000),
        sample_rate=fields.size("out_sample_rate", 48_000),
        rate_buckets=_read_rate_buckets(fields),
    )


def _read_rate_buckets(fields: JsonFields) -> tuple[int, ...] | None:
    """Return the boundaries that a checkpoint names or that are usual; null means none."""
    key = "sr_bin_boundaries"
    if fields.values.get(key, ...) is None:
        return None
    return fields.integers(key, (20_000, 30_000, 40_000))


def _check_kind(fields: JsonFields) -> None:
    for key, valid in (("depthwise", True), ("use_noise_block", False), ("cond_out_layer", False)):
        fields.expect(key, valid, default=valid)
    fields.expect("cond_type", *SCALE_AND_BIAS, default=SCALE_AND_BIAS[0])


ARCHITECTURE = "voxcpm2"
AUDIO_START, REFERENCE_START, REFERENCE_END = MARKS = 101, 103, 104
"""Tokens around sound, the same in every published checkpoint."""
DEFAULT_MAX_LENGTH = 8192
"""Positions, if the file names none."""


@dataclass(frozen=True, slots=True)
class LongRope:
    """Rotary positions whose frequencies are divided by a factor each (LongRoPE, Ding et al.,
    2024)."""

    theta: float
    head_dim: int
    factors: tuple[float, ...]
    """[head_dim / 2]: those for the whole range of positions; the table has no other."""
    max_positions: int
    original_positions: int
    """Of the training before the range was extended."""


@dataclass(frozen=True, slots=True)
class MiniCpmSizes:
    """Layers of a Llama: norms before attention and perceptron, no biases."""

    hidden_size: int
    intermediate_size: int
    layers: int
    heads: int
    kv_heads: int
    head_dim: int
    rms_norm_eps: float
    rope: LongRope | None
    """None: positions do not count."""


@dataclass(frozen=True, slots=True)
class VoxCpm2Config:
    """The shapes of a checkpoint's talker."""

    base: MiniCpmSizes
    residual: MiniCpmSizes
    encoder: MiniCpmSizes
    """Within a patch, as the next one."""
    dit: MiniCpmSizes
    vocab_size: int
    patch_size: int
    """Latents of a patch, which is the talker's frame."""
    latent_dim: int
    """Numbers of a latent."""
    quantized_dim: int
    """Of the scalar quantization between the two language models."""
    quantized_scale: int
    """Steps from 0 to 1."""
    max_length: int
    """Positions of a request."""

    @property
    def frame_size(self) -> int:
        """Numbers of a patch."""
        return self.patch_size * self.latent_dim


def load_config(checkpoint: Path) -> VoxCpm2Config:
    """Read the talker's part of a checkpoint's config.json. Raises ConfigError: there is none, or
    it is of another model or of a kind that is not published."""
    fields = read_config(checkpoint)
    lm = fields.section("lm_config")
    lm.expect("use_mup", False, default=True)
    lm.expect("no_rope", False, default=False)
    dit = fields.section("dit_config")
    dit.expect("dit_mean_mode", False, default=False)
    base = _read_language_model(lm)
    without_rope = fields.get("residual_lm_no_rope", bool, default=False)
    vocabulary = lm.size("vocab_size")
    if vocabulary <= max(MARKS):
        raise ConfigError(f"{lm.where}: vocab_size {vocabulary} has no room for tokens {MARKS}")
    return VoxCpm2Config(
        base=base,
        residual=replace(
            base,
            layers=fields.size("residual_lm_num_layers", 8),
            rope=None if without_rope else base.rope,
        ),
        encoder=_read_local(fields.section("encoder_config"), lm, base),
        dit=_read_local(dit, lm, base),
        vocab_size=vocabulary,
        patch_size=fields.size("patch_size", 4),
        latent_dim=fields.size("feat_dim", 64),
        quantized_dim=fields.size("scalar_quantization_latent_dim", 512),
        quantized_scale=fields.size("scalar_quantization_scale", 9),
        max_length=fields.size("max_length", DEFAULT_MAX_LENGTH),
    )


def read_config(checkpoint: Path) -> JsonFields:
    """Read a checkpoint's config.json. Raises ConfigError: there is none, or it is of another
    model."""
    fields = read_json(checkpoint / "config.json")
    architecture = fields.get("architecture", str)
    if architecture.lower() != ARCHITECTURE:
        raise ConfigError(
            f"{fields.where}: architecture is {architecture!r}, expected {ARCHITECTURE!r}"
        )
    return fields


def _read_language_model(lm: JsonFields) -> MiniCpmSizes:
    heads = lm.size("num_attention_heads")
    hidden = lm.size("hidden_size")
    head_dim = lm.size("kv_channels", hidden // heads)
    kv_heads = lm.size("num_key_value_heads")
    check_shared_heads(heads, kv_heads, lm.where)
    return MiniCpmSizes(
        hidden_size=hidden,
        intermediate_size=lm.size("intermediate_size"),
        layers=lm.size("num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        rms_norm_eps=lm.get("rms_norm_eps", float),
        rope=_read_rope(lm, head_dim),
    )


def _read_local(fields: JsonFields, lm: JsonFields, base: MiniCpmSizes) -> MiniCpmSizes:
    """Return the stack of a network within a patch; what it does not name is the base's."""
    heads = fields.size("num_heads", 16)
    hidden = fields.size("hidden_dim", 1024)
    head_dim = fields.size("kv_channels", hidden // heads)
    check_shared_heads(heads, base.kv_heads, fields.where)
    return replace(
        base,
        hidden_size=hidden,
        intermediate_size=fields.size("ffn_dim", 4096),
        layers=fields.size("num_layers", 4),
        heads=heads,
        head_dim=head_dim,
        rope=_read_rope(lm, head_dim),
    )


def _read_rope(lm: JsonFields, head_dim: int) -> LongRope:
    scaling = lm.section("rope_scaling")
    longest = lm.size("max_position_embeddings")
    original = scaling.size("original_max_position_embeddings")
    factors = scaling.numbers("long_factor" if longest > original else "short_factor")
    if len(factors) != head_dim // 2:
        raise ConfigError(
            f"{scaling.where}: {len(factors)} factors for heads of {head_dim}; "
            f"there must be {head_dim // 2}"
        )
    return LongRope(lm.get("rope_theta", float), head_dim, factors, longest, original)
