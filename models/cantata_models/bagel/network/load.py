"""Loads the published weights: each part by the names that the checkpoint has for it."""

from __future__ import annotations

import math
from collections.abc import Sequence
from pathlib import Path

import torch
from torch import nn

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors
from cantata_layers.weight_map import WeightMap
from cantata_models.bagel.config import WEIGHTS, BagelConfig, LanguageConfig
from cantata_models.bagel.network.latents import LatentTokens
from cantata_models.bagel.network.mixture import Mixture
from cantata_models.bagel.network.vision import Vision

MODEL = "language_model.model."
LANGUAGE = WeightMap(
    {
        f"{MODEL}embed_tokens.weight": "words.embeddings",
        "language_model.lm_head.weight": "words.head",
        # Each set of weights is a part of its own; published names mark those for latents.
        f"{MODEL}layers.{{}}.mlp_moe_gen.{{}}": "mixture.drawn.layers.{}.mlp.{}",
        f"{MODEL}{{}}_moe_gen.{{}}": "mixture.drawn.{}.{}",
        f"{MODEL}{{}}": "mixture.plain.{}",
    }
)
LATENTS = WeightMap(
    {
        "vae2llm.{}": "into.{}",
        "llm2vae.{}": "out.{}",
        "time_embedder.mlp.0.{}": "time_in.{}",
        "time_embedder.mlp.2.{}": "time_out.{}",
        "latent_pos_embed.{}": "{}",
    }
)
VISION = WeightMap(
    {
        "vit_model.vision_model.embeddings.position_embedding.weight": "position_embedding",
        "vit_model.vision_model.embeddings.patch_embedding.{}": "patch_embedding.{}",
        "vit_model.vision_model.encoder.layers.{}": "layers.{}",
        "vit_model.vision_model.post_layernorm.{}": "post_layernorm.{}",
        "connector.{}": "connector.{}",
        "vit_pos_embed.pos_embed": "pos_embed",
    }
)
LATENT_TABLE, VISION_TABLE = "latent_pos_embed.pos_embed", "vit_pos_embed.pos_embed"
Tensors = dict[str, torch.Tensor]


class Words(nn.Module):
    """Embeddings of tokens, and the product that foretells the next one.

    Args:
        vocabulary: tokens.
        width: D.
    """

    def __init__(self, vocabulary: int, width: int) -> None:
        super().__init__()
        self.embeddings = nn.Parameter(torch.empty(vocabulary, width))
        self.head = nn.Parameter(torch.empty(vocabulary, width))

    @property
    def device(self) -> torch.device:
        """Of the weights."""
        return self.embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self.embeddings.dtype

    def embedded(self, tokens: Sequence[int]) -> torch.Tensor:
        """[len(tokens), D]."""
        index = torch.tensor(tokens, dtype=torch.long)
        return self.embeddings[index.to(self.device, non_blocking=True)]

    def scores(self, row: torch.Tensor) -> torch.Tensor:
        """[D] behind the last norm -> [tokens] float32."""
        return (self.head @ row).float()


class BagelLanguageModel(nn.Module):
    """The language model, and its words."""

    def __init__(self, config: LanguageConfig) -> None:
        super().__init__()
        self.mixture = Mixture(config)
        self.words = Words(config.vocabulary, config.width)


def load_language(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> BagelLanguageModel:
    """Load the language model.

    Args:
        checkpoint: its folder.
        config: of it.
        device: of the weights.
        dtype: float32 or bfloat16.

    Raises:
        ConfigError: weights are missing or of another shape.
    """
    with torch.device("meta"):
        language = BagelLanguageModel(config.language)
    LANGUAGE.fill(language, _tensors(checkpoint, LANGUAGE, device, dtype).items(), checkpoint)
    return language


def load_latent_tokens(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> LatentTokens:
    """Return what turns latents into tokens and back; raises as `load_language`."""
    tensors = _tensors(checkpoint, LATENTS, device, dtype)
    numbers = _read_side(tensors, "vae2llm.weight", checkpoint, dim=1)
    rows = _count_rows(tensors, LATENT_TABLE, checkpoint)
    with torch.device("meta"):
        network = LatentTokens(numbers, config.language.width, rows)
    LATENTS.fill(network, tensors.items(), checkpoint)
    return network


def load_vision(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> Vision:
    """Return the vision transformer with its connector; raises as `load_language`."""
    tensors = _tensors(checkpoint, VISION, device, dtype)
    rows = _count_rows(tensors, VISION_TABLE, checkpoint)
    with torch.device("meta"):
        vision = Vision(config.vision, config.language.width, rows)
    VISION.fill(vision, tensors.items(), checkpoint)
    return vision


def latent_side(checkpoint: Path) -> int:
    """How many tokens a side of a picture may have.

    Raises:
        ConfigError: as `load_language`.
    """
    prefix, _, name = LATENT_TABLE.partition(".")
    tensors = dict(read_tensors(checkpoint, f"{prefix}.", WEIGHTS))
    return math.isqrt(_count_rows(tensors, name, checkpoint))


def _tensors(
    checkpoint: Path, names: WeightMap, device: torch.device, dtype: torch.dtype
) -> Tensors:
    found = names.read(checkpoint, WEIGHTS)
    return {name: tensor.to(device, dtype) for name, tensor in found}


def _count_rows(tensors: Tensors, table: str, checkpoint: Path) -> int:
    """Rows of a table of positions, which is square."""
    rows = _read_side(tensors, table, checkpoint, dim=0)
    if math.isqrt(rows) ** 2 != rows:
        raise ConfigError(f"{checkpoint}: {table} has {rows} rows, not those of a square")
    return rows


def _read_side(tensors: Tensors, name: str, checkpoint: Path, dim: int) -> int:
    if name not in tensors:
        raise ConfigError(f"{checkpoint}: tensor {name} is missing")
    return int(tensors[name].shape[dim])
