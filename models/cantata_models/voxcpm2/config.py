"""Reads the config.json of a published checkpoint.

The format has no `model_type`; `"architecture": "voxcpm2"` names the model. Source: the package
`voxcpm`, model/voxcpm2.py and modules/minicpm4/config.py.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen3_config import check_shared_heads

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
class Stack:
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

    base: Stack
    residual: Stack
    encoder: Stack
    """Within a patch, as the next one."""
    dit: Stack
    vocab_size: int
    patch_size: int
    """Latents of a patch, which is the talker's frame."""
    latent_dim: int
    """Numbers of a latent."""
    quantised_dim: int
    """Of the scalar quantisation between the two language models."""
    quantised_scale: int
    """Steps from 0 to 1."""
    max_length: int
    """Positions of a request."""

    @property
    def frame_size(self) -> int:
        """Numbers of a patch."""
        return self.patch_size * self.latent_dim


def load_config(checkpoint: Path) -> VoxCpm2Config:
    """Read the talker's part of a checkpoint's config.json.

    Raises:
        ConfigError: there is none, or it is of another model or of a kind that is not published.
    """
    fields = read_config(checkpoint)
    lm = fields.section("lm_config")
    if lm.get("use_mup", bool, default=True):
        raise ConfigError(f"{lm.where}: use_mup must be false")
    if lm.get("no_rope", bool, default=False):
        raise ConfigError(f"{lm.where}: no_rope must be false")
    dit = fields.section("dit_config")
    if dit.get("dit_mean_mode", bool, default=False):
        raise ConfigError(f"{dit.where}: dit_mean_mode must be false")
    base = _language_model(lm)
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
        encoder=_local(fields.section("encoder_config"), lm, base),
        dit=_local(dit, lm, base),
        vocab_size=vocabulary,
        patch_size=fields.size("patch_size", 4),
        latent_dim=fields.size("feat_dim", 64),
        quantised_dim=fields.size("scalar_quantization_latent_dim", 512),
        quantised_scale=fields.size("scalar_quantization_scale", 9),
        max_length=fields.size("max_length", DEFAULT_MAX_LENGTH),
    )


def read_config(checkpoint: Path) -> JsonFields:
    """Read a checkpoint's config.json.

    Raises:
        ConfigError: there is none, or it is of another model.
    """
    fields = read_json(checkpoint / "config.json")
    architecture = fields.get("architecture", str)
    if architecture.lower() != ARCHITECTURE:
        raise ConfigError(
            f"{fields.where}: architecture is {architecture!r}, expected {ARCHITECTURE!r}"
        )
    return fields


def _language_model(lm: JsonFields) -> Stack:
    heads = lm.size("num_attention_heads")
    hidden = lm.size("hidden_size")
    head_dim = lm.size("kv_channels", hidden // heads)
    kv_heads = lm.size("num_key_value_heads")
    check_shared_heads(heads, kv_heads, lm.where)
    return Stack(
        hidden_size=hidden,
        intermediate_size=lm.size("intermediate_size"),
        layers=lm.size("num_hidden_layers"),
        heads=heads,
        kv_heads=kv_heads,
        head_dim=head_dim,
        rms_norm_eps=lm.get("rms_norm_eps", float),
        rope=_rope(lm, head_dim),
    )


def _local(fields: JsonFields, lm: JsonFields, base: Stack) -> Stack:
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
        rope=_rope(lm, head_dim),
    )


def _rope(lm: JsonFields, head_dim: int) -> LongRope:
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
