"""The published model_index.json and the config.json of each part, and which are served."""

from __future__ import annotations

import math
from collections.abc import Collection, Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json


def require_false(fields: JsonFields, *keys: str) -> None:
    """Refuse variants that these switches turn on.

    Raises:
        ConfigError: one of them is true.
    """
    for key in keys:
        if fields.get(key, bool, False):
            raise ConfigError(f"{fields.where}: {key}: true is not served; valid: false")


def require_one_of(fields: JsonFields, key: str, found: object, valid: Collection[object]) -> None:
    """Refuse other values.

    Raises:
        ConfigError: the value is none of these.
    """
    if found not in valid:
        choices = ", ".join(repr(choice) for choice in valid)
        raise ConfigError(f"{fields.where}: {key} {found!r} is not served; valid: {choices}")


TIMESTEPS = 1000
FEW_STEPS_SHIFT = math.log(3)
"""Both shifts of checkpoints that were distilled to few steps."""


@dataclass(frozen=True, slots=True)
class ScheduleConfig:
    """Values of FlowMatchEulerDiscreteScheduler."""

    dynamic: bool
    """Whether the shift follows from a picture's size."""
    shift: float
    """Of all sizes, if it is not dynamic."""
    min_tokens: int
    """Where the dynamic shift is `base_shift`, as the next two."""
    max_tokens: int
    base_shift: float
    max_shift: float
    terminal: float
    """The last step's share of noise; 0: as the shift leaves it."""

    @property
    def few_steps(self) -> bool:
        """Whether these are the settings of distilled weights, which take no guidance."""
        shifts = (self.base_shift, self.max_shift)
        few = all(math.isclose(shift, FEW_STEPS_SHIFT, abs_tol=1e-4) for shift in shifts)
        return self.dynamic and few and self.terminal == 0


def few_steps_schedule() -> ScheduleConfig:
    """The schedule that Lightning's weights were distilled with, for any size."""
    return ScheduleConfig(
        dynamic=True,
        shift=1.0,
        min_tokens=256,
        max_tokens=8192,
        base_shift=FEW_STEPS_SHIFT,
        max_shift=FEW_STEPS_SHIFT,
        terminal=0.0,
    )


def read_schedule(fields: JsonFields) -> ScheduleConfig:
    """Read a scheduler's config; unknown keys are ignored.

    Raises:
        ConfigError: a value is of the wrong type or not served.
    """
    require_false(
        fields,
        "invert_sigmas",
        "stochastic_sampling",
        "use_beta_sigmas",
        "use_exponential_sigmas",
        "use_karras_sigmas",
    )
    kind = fields.get("time_shift_type", str, "exponential")
    require_one_of(fields, "time_shift_type", kind, ("exponential",))
    trained = fields.get("num_train_timesteps", int, TIMESTEPS)
    require_one_of(fields, "num_train_timesteps", trained, (TIMESTEPS,))
    config = ScheduleConfig(
        dynamic=fields.get("use_dynamic_shifting", bool, False),
        shift=fields.get("shift", float, 1.0),
        min_tokens=fields.get("base_image_seq_len", int, 256),
        max_tokens=fields.get("max_image_seq_len", int, 4096),
        base_shift=fields.get("base_shift", float, 0.5),
        max_shift=fields.get("max_shift", float, 1.15),
        terminal=fields.get("shift_terminal", float, 0.0),
    )
    if config.min_tokens >= config.max_tokens or not 0 <= config.terminal < 1:
        raise ConfigError(
            f"{fields.where}: base_image_seq_len must be below max_image_seq_len and "
            f"shift_terminal 0 to 1, not {config.min_tokens}, {config.max_tokens} and "
            f"{config.terminal}"
        )
    return config


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


INDEX = "model_index.json"
TRANSFORMER, VAE, SCHEDULER = "transformer", "vae", "scheduler"
TEXT_ENCODER, TOKENIZER, PROCESSOR = "text_encoder", "tokenizer", "processor"
WEIGHTS = "diffusion_pytorch_model"
"""How the weights' files of transformer and autoencoder begin."""

CLASSES: Mapping[str, tuple[str, ...]] = {
    TRANSFORMER: ("QwenImageTransformer2DModel",),
    VAE: ("AutoencoderKLQwenImage",),
    SCHEDULER: ("FlowMatchEulerDiscreteScheduler",),
    TEXT_ENCODER: ("Qwen2_5_VLForConditionalGeneration",),
    TOKENIZER: ("Qwen2Tokenizer", "Qwen2TokenizerFast"),
    PROCESSOR: ("Qwen2VLProcessor", "Qwen2_5_VLProcessor"),
}
"""A part -> the classes that it may be of."""


class Family(StrEnum):
    """Values of `_class_name` that are served."""

    IMAGE = "QwenImagePipeline"
    """Pictures from text."""
    EDIT = "QwenImageEditPipeline"
    """One picture, changed."""
    EDIT_PLUS = "QwenImageEditPlusPipeline"
    """Several pictures, changed or combined (Edit-2509, Edit-2511)."""

    @property
    def takes_pictures(self) -> bool:
        """Whether a request has pictures."""
        return self is not Family.IMAGE


@dataclass(frozen=True, slots=True)
class PipelineConfig:
    """The configuration of a checkpoint."""

    family: Family
    transformer: TransformerConfig
    vae: VaeConfig
    schedule: ScheduleConfig

    @property
    def pixels_per_token(self) -> int:
        """On a side."""
        return self.vae.pixels_per_latent * PATCH


def load_config(folder: Path) -> PipelineConfig:
    """Read a checkpoint's model_index.json and the configuration of its parts.

    Raises:
        ConfigError: a file or a value is missing, or a value is wrong or not served.
    """
    index = read_json(folder / INDEX)
    family = read_family(index)
    for part, classes in CLASSES.items():
        if part != PROCESSOR or family.takes_pictures:
            _check_part(index, part, classes)
    config = PipelineConfig(
        family=family,
        transformer=read_transformer(read_json(folder / TRANSFORMER / "config.json")),
        vae=read_vae(read_json(folder / VAE / "config.json")),
        schedule=read_schedule(read_json(folder / SCHEDULER / "scheduler_config.json")),
    )
    _check_consistent(config, folder)
    return config


def read_family(index: JsonFields) -> Family:
    """Return what model_index.json says.

    Raises:
        ConfigError: it names no pipeline that is served.
    """
    name = index.get("_class_name", str)
    require_one_of(index, "_class_name", name, [family.value for family in Family])
    return Family(name)


def _check_part(index: JsonFields, part: str, classes: tuple[str, ...]) -> None:
    found = index.strings(part)
    require_one_of(index, part, found[-1] if found else None, classes)


def _check_consistent(config: PipelineConfig, folder: Path) -> None:
    channels = config.vae.latent_channels * PATCH**2
    if channels != config.transformer.token_width:
        raise ConfigError(
            f"{folder}: the transformer's in_channels {config.transformer.token_width} must be "
            f"{PATCH**2} times the autoencoder's z_dim {config.vae.latent_channels}"
        )
    text = read_json(folder / TEXT_ENCODER / "config.json")
    nested = text.section("text_config")
    width = (nested if text.items("text_config") else text).get("hidden_size", int)
    if width != config.transformer.text_width:
        raise ConfigError(
            f"{folder}: the transformer's joint_attention_dim {config.transformer.text_width} must "
            f"be the text encoder's hidden_size {width}"
        )
