"""vae/config.json."""

from __future__ import annotations

from dataclasses import dataclass

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen_image.config.parts import require_one_of

COLOURS = 3


@dataclass(frozen=True, slots=True)
class VaeConfig:
    """Sizes of the autoencoder, and the statistics of its latents."""

    base_width: int
    """Channels at a picture's own size."""
    latent_channels: int
    width_factors: tuple[int, ...]
    """Of the base width, one for each resolution, from the finest."""
    residual_blocks: int
    """At each resolution of the encoder; the decoder has one more."""
    means: tuple[float, ...]
    """Of each latent channel, as the next."""
    stds: tuple[float, ...]

    @property
    def pixels_per_latent(self) -> int:
        """On a side."""
        return 1 << (len(self.width_factors) - 1)


def read_vae(fields: JsonFields) -> VaeConfig:
    """Read an AutoencoderKLQwenImage's config; unknown keys are ignored.

    Raises:
        ConfigError: a value is missing, of the wrong type or not served.
    """
    require_one_of(fields, "input_channels", fields.get("input_channels", int, COLOURS), (COLOURS,))
    if fields.numbers("attn_scales", ()):
        raise ConfigError(f"{fields.where}: attn_scales is not served; valid: []")
    config = VaeConfig(
        base_width=fields.get("base_dim", int, 96),
        latent_channels=fields.get("z_dim", int, 16),
        width_factors=fields.integers("dim_mult", (1, 2, 4, 4)),
        residual_blocks=fields.get("num_res_blocks", int, 2),
        means=fields.numbers("latents_mean"),
        stds=fields.numbers("latents_std"),
    )
    if not len(config.means) == len(config.stds) == config.latent_channels:
        raise ConfigError(
            f"{fields.where}: latents_mean and latents_std must have z_dim "
            f"{config.latent_channels} numbers each, not {len(config.means)} and {len(config.stds)}"
        )
    if min(config.stds) <= 0:
        raise ConfigError(f"{fields.where}: latents_std must be positive, not {min(config.stds)}")
    return config
