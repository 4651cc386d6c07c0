"""A checkpoint's sizes.

Of the published folder, llm_config.json and vit_config.json are read. What they leave out stands in
the publisher's code (`app.py`): queries and keys are normed, the output layer is not tied to the
embeddings, the vision transformer lacks its last layer and has learnt positions, a token is 2 x 2
latents. Source: github.com/ByteDance-Seed/Bagel.
"""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

import msgspec

from cantata_layers.json_fields import JsonFields, read_json

LANGUAGE, VISION = "llm_config.json", "vit_config.json"
WEIGHTS, AUTOENCODER = "ema", "ae"
"""Stems of the safetensors files."""
NORM_EPSILON = 1e-6
PATCH = 2
"""Latents on a side of a token."""
PIXELS_PER_LATENT = 8
"""On a side."""
PIXELS_PER_TOKEN = PATCH * PIXELS_PER_LATENT
COLOURS = 3
MARKS = 2
"""Tokens around a picture."""
MAX_READ = 4096
"""Tokens of a text that a step reads at most: as many as a picture of 1024 x 1024 has, which is
always read whole."""


class LanguageConfig(msgspec.Struct, frozen=True):
    """Sizes of the language model, as llm_config.json has them; both sets of weights have them."""

    layers: int = msgspec.field(name="num_hidden_layers")
    width: int = msgspec.field(name="hidden_size")
    inner: int = msgspec.field(name="intermediate_size")
    """Of the MLP."""
    heads: int = msgspec.field(name="num_attention_heads")
    key_heads: int = msgspec.field(name="num_key_value_heads")
    theta: float = msgspec.field(name="rope_theta")
    """Base of the rotary positions."""
    positions: int = msgspec.field(name="max_position_embeddings")
    """That it was trained with."""
    vocabulary: int = msgspec.field(name="vocab_size")

    def __post_init__(self) -> None:
        if self.width % self.heads or self.heads % self.key_heads:
            raise ValueError(
                f"{self.heads} heads must divide hidden_size {self.width}, and {self.key_heads} "
                "key heads the heads"
            )

    @property
    def head(self) -> int:
        """Columns of a head."""
        return self.width // self.heads


@dataclass(frozen=True, slots=True)
class VisionConfig:
    layers: int
    """That are run: one less than the file says."""
    width: int
    inner: int
    heads: int
    patch: int
    """Pixels on a side."""
    side: int
    """Patches on a side of the largest picture."""


@dataclass(frozen=True, slots=True)
class BagelConfig:
    language: LanguageConfig
    vision: VisionConfig


def load_config(checkpoint: Path) -> BagelConfig:
    """Read a checkpoint's configuration. Raises ConfigError: a file is missing, or a value is
    missing, of the wrong type or not served."""
    return BagelConfig(
        read_language(read_json(checkpoint / LANGUAGE)), read_vision(read_json(checkpoint / VISION))
    )


def read_language(fields: JsonFields) -> LanguageConfig:
    """Read llm_config.json; raises as `load_config`."""
    fields.expect("rms_norm_eps", NORM_EPSILON, default=NORM_EPSILON)
    return fields.read(LanguageConfig)


def read_vision(fields: JsonFields) -> VisionConfig:
    """Read vit_config.json; raises as `load_config`."""
    fields.expect("layer_norm_eps", NORM_EPSILON, default=NORM_EPSILON)
    patch = fields.get("patch_size", int)
    return VisionConfig(
        layers=fields.get("num_hidden_layers", int) - 1,
        width=fields.get("hidden_size", int),
        inner=fields.get("intermediate_size", int),
        heads=fields.get("num_attention_heads", int),
        patch=patch,
        side=fields.get("image_size", int) // patch,
    )
