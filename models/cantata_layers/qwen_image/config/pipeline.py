"""model_index.json: which pipeline a checkpoint is, and that its parts are those served."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum
from pathlib import Path

from cantata.contract.data.errors import ConfigError
from cantata_layers.json_fields import JsonFields, read_json
from cantata_layers.qwen_image.config.parts import require_one_of
from cantata_layers.qwen_image.config.schedule import ScheduleConfig, read_schedule
from cantata_layers.qwen_image.config.transformer import (
    PATCH,
    TransformerConfig,
    read_transformer,
)
from cantata_layers.qwen_image.config.vae import VaeConfig, read_vae

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
