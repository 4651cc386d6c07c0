"""The published model_index.json and the config.json of each part, and which are served."""

from __future__ import annotations

import math
from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

import msgspec

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json

TIMESTEPS = 1000
FEW_STEPS_SHIFT = math.log(3)
"""Both shifts of checkpoints that were distilled to few steps."""


class ScheduleConfig(msgspec.Struct, frozen=True):
    """Values of FlowMatchEulerDiscreteScheduler."""

    dynamic: bool = msgspec.field(name="use_dynamic_shifting", default=False)
    """Whether the shift follows from a picture's size."""
    shift: float = 1.0
    """Of all sizes, if it is not dynamic."""
    min_tokens: int = msgspec.field(name="base_image_seq_len", default=256)
    """Where the dynamic shift is `base_shift`, as the next two."""
    max_tokens: int = msgspec.field(name="max_image_seq_len", default=4096)
    base_shift: float = 0.5
    max_shift: float = 1.15
    terminal: float = msgspec.field(name="shift_terminal", default=0.0)
    """The last step's share of noise; 0: as the shift leaves it."""

    def __post_init__(self) -> None:
        if self.min_tokens >= self.max_tokens or not 0 <= self.terminal < 1:
            raise ValueError(
                "base_image_seq_len must be below max_image_seq_len and shift_terminal 0 to 1, "
                f"not {self.min_tokens}, {self.max_tokens} and {self.terminal}"
            )

    @property
    def few_steps(self) -> bool:
        """Whether these are the settings of distilled weights, which take no guidance."""
        shifts = (self.base_shift, self.max_shift)
        few = all(math.isclose(shift, FEW_STEPS_SHIFT, abs_tol=1e-4) for shift in shifts)
        return self.dynamic and few and self.terminal == 0


def few_steps_schedule() -> ScheduleConfig:
    """The schedule that Lightning's weights were distilled with, for any size."""
    return ScheduleConfig(
        dynamic=True, max_tokens=8192, base_shift=FEW_STEPS_SHIFT, max_shift=FEW_STEPS_SHIFT
    )


def read_schedule(fields: JsonFields) -> ScheduleConfig:
    """Read a scheduler's config; unknown keys are ignored. Raises ConfigError: a value is of the
    wrong type or not served."""
    for switch in (
        "invert_sigmas",
        "stochastic_sampling",
        "use_beta_sigmas",
        "use_exponential_sigmas",
        "use_karras_sigmas",
    ):
        fields.expect(switch, False, default=False)
    fields.expect("time_shift_type", "exponential", default="exponential")
    fields.expect("num_train_timesteps", TIMESTEPS, default=TIMESTEPS)
    return fields.read(ScheduleConfig)


PATCH = 2
"""Latents on a side of a token."""


class TransformerConfig(msgspec.Struct, frozen=True):
    layers: int = msgspec.field(name="num_layers", default=60)
    heads: int = msgspec.field(name="num_attention_heads", default=24)
    head_dim: int = msgspec.field(name="attention_head_dim", default=128)
    text_width: int = msgspec.field(name="joint_attention_dim", default=3584)
    """Columns of a text embedding."""
    token_width: int = msgspec.field(name="in_channels", default=64)
    """Numbers of a token of a picture: its latents' channels times `PATCH` squared."""
    rope_axes: tuple[int, int, int] = msgspec.field(name="axes_dims_rope", default=(16, 56, 56))
    """Columns of a head that turn by frame, row and column."""
    still_references: bool = msgspec.field(name="zero_cond_t", default=False)
    """Whether tokens of reference pictures are modulated as without noise (`zero_cond_t`)."""

    def __post_init__(self) -> None:
        axes = self.rope_axes
        if sum(axes) != self.head_dim or any(axis < 2 or axis % 2 for axis in axes):
            raise ValueError(
                "axes_dims_rope must be three even numbers that add up to attention_head_dim "
                f"{self.head_dim}, not {list(axes)}"
            )

    @property
    def width(self) -> int:
        """Columns of a hidden state."""
        return self.heads * self.head_dim


def read_transformer(fields: JsonFields) -> TransformerConfig:
    """Read a QwenImageTransformer2DModel's config; unknown keys are ignored. Raises ConfigError: a
    value is missing, of the wrong type or not served."""
    for switch in ("guidance_embeds", "use_additional_t_cond", "use_layer3d_rope"):
        fields.expect(switch, False, default=False)
    config = fields.read(TransformerConfig)
    output = fields.get("out_channels", int, 16)
    patch = fields.get("patch_size", int, PATCH)
    if patch != PATCH or output * PATCH**2 != config.token_width:
        raise ConfigError(
            f"{fields.where}: patch_size must be {PATCH} and in_channels {PATCH**2} times "
            f"out_channels, not patch_size {patch}, in_channels {config.token_width}, "
            f"out_channels {output}"
        )
    return config


COLOURS = 3


class VaeConfig(msgspec.Struct, frozen=True):
    """Sizes of the autoencoder, and the statistics of its latents."""

    means: tuple[float, ...] = msgspec.field(name="latents_mean")
    """Of each latent channel, as the next."""
    stds: tuple[float, ...] = msgspec.field(name="latents_std")
    base_width: int = msgspec.field(name="base_dim", default=96)
    """Channels at a picture's own size."""
    latent_channels: int = msgspec.field(name="z_dim", default=16)
    width_factors: tuple[int, ...] = msgspec.field(name="dim_mult", default=(1, 2, 4, 4))
    """Of the base width, one for each resolution, from the finest."""
    residual_blocks: int = msgspec.field(name="num_res_blocks", default=2)
    """At each resolution of the encoder; the decoder has one more."""

    def __post_init__(self) -> None:
        if not len(self.means) == len(self.stds) == self.latent_channels:
            raise ValueError(
                f"latents_mean and latents_std must have z_dim {self.latent_channels} numbers "
                f"each, not {len(self.means)} and {len(self.stds)}"
            )
        if min(self.stds) <= 0:
            raise ValueError(f"latents_std must be positive, not {min(self.stds)}")

    @property
    def pixels_per_latent(self) -> int:
        """On a side."""
        return 1 << (len(self.width_factors) - 1)


def read_vae(fields: JsonFields) -> VaeConfig:
    """Read an AutoencoderKLQwenImage's config; unknown keys are ignored. Raises ConfigError: a
    value is missing, of the wrong type or not served."""
    fields.expect("input_channels", COLOURS, default=COLOURS)
    if fields.numbers("attn_scales", ()):
        raise ConfigError(f"{fields.where}: attn_scales is not served; valid: []")
    return fields.read(VaeConfig)


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
    family: Family
    transformer: TransformerConfig
    vae: VaeConfig
    schedule: ScheduleConfig

    @property
    def pixels_per_token(self) -> int:
        """On a side."""
        return self.vae.pixels_per_latent * PATCH


def load_config(folder: Path) -> PipelineConfig:
    """Read a checkpoint's model_index.json and the configuration of its parts. Raises ConfigError:
    a file or a value is missing, or a value is wrong or not served."""
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
    """Return what model_index.json says. Raises ConfigError: it names no pipeline that is
    served."""
    return Family(index.expect("_class_name", *(family.value for family in Family)))


def _check_part(index: JsonFields, part: str, classes: tuple[str, ...]) -> None:
    found = index.strings(part)[-1:]
    JsonFields(dict.fromkeys([part], *found), index.where).expect(part, *classes)


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
