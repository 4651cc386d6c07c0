"""transformer/config.json."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen_image.config.parts import require_false

PATCH = 2
"""Latents on a side of a token."""


@dataclass(frozen=True, slots=True)
class TransformerConfig:
    """Sizes of the denoiser."""

    layers: int
    heads: int
    head_dim: int
    text_width: int
    """Columns of a text embedding."""
    token_width: int
    """Numbers of a token of a picture: its latents' channels times `PATCH` squared."""
    rope_axes: tuple[int, int, int]
    """Columns of a head that turn by frame, row and column."""
    still_references: bool
    """Whether tokens of reference pictures are modulated as without noise (`zero_cond_t`)."""

    @property
    def width(self) -> int:
        """Columns of a hidden state."""
        return self.heads * self.head_dim


def read_transformer(fields: JsonFields) -> TransformerConfig:
    """Read a QwenImageTransformer2DModel's config; unknown keys are ignored.

    Raises:
        ConfigError: a value is missing, of the wrong type or not served.
    """
    require_false(fields, "guidance_embeds", "use_additional_t_cond", "use_layer3d_rope")
    axes = fields.integers("axes_dims_rope", (16, 56, 56))
    head_dim = fields.get("attention_head_dim", int, 128)
    token_width = fields.get("in_channels", int, 64)
    output = fields.get("out_channels", int, 16) * PATCH**2
    patch = fields.get("patch_size", int, PATCH)
    if len(axes) != 3 or sum(axes) != head_dim or any(axis < 2 or axis % 2 for axis in axes):
        raise ConfigError(
            f"{fields.where}: axes_dims_rope must be three even numbers that add up to "
            f"attention_head_dim {head_dim}, not {list(axes)}"
        )
    if patch != PATCH or output != token_width:
        raise ConfigError(
            f"{fields.where}: patch_size must be {PATCH} and in_channels {PATCH**2} times "
            f"out_channels, not patch_size {patch}, in_channels {token_width}, out_channels "
            f"{output // PATCH**2}"
        )
    return TransformerConfig(
        layers=fields.get("num_layers", int, 60),
        heads=fields.get("num_attention_heads", int, 24),
        head_dim=head_dim,
        text_width=fields.get("joint_attention_dim", int, 3584),
        token_width=token_width,
        rope_axes=(axes[0], axes[1], axes[2]),
        still_references=fields.get("zero_cond_t", bool, False),
    )
