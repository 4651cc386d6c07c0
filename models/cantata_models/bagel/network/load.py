"""Loads the published weights: each part by the names that the checkpoint has for it."""

from __future__ import annotations

import math
import re
from collections.abc import Mapping, Sequence
from pathlib import Path

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_tensors
from cantata_layers.qwen_image.loading import fill
from cantata_models.bagel.config import WEIGHTS, BagelConfig
from cantata_models.bagel.network.latents import LatentTokens
from cantata_models.bagel.network.mixture import Mixture
from cantata_models.bagel.network.vision import Vision

MODEL = "language_model.model."
DRAWN = "_moe_gen"
"""In the names of the weights for latents."""
EMBEDDINGS, HEAD = f"{MODEL}embed_tokens.weight", "language_model.lm_head.weight"
LATENTS = {
    "vae2llm.": "into.",
    "llm2vae.": "out.",
    "time_embedder.mlp.0.": "time_in.",
    "time_embedder.mlp.2.": "time_out.",
    "latent_pos_embed.": "",
}
"""How published names begin -> how they begin here, as the next."""
VISION = {
    "vit_model.vision_model.embeddings.position_embedding.weight": "position_embedding",
    "vit_model.vision_model.embeddings.": "",
    "vit_model.vision_model.encoder.": "",
    "vit_model.vision_model.post_layernorm": "post_layernorm",
    "connector.": "connector.",
    "vit_pos_embed.": "",
}
TABLE = "pos_embed"


class Words:
    """Embeddings of tokens, and the product that foretells the next one.

    Args:
        embeddings: [tokens, D].
        head: [tokens, D].
    """

    def __init__(self, embeddings: torch.Tensor, head: torch.Tensor) -> None:
        self._embeddings, self._head = embeddings, head

    @property
    def device(self) -> torch.device:
        """Of the weights."""
        return self._embeddings.device

    @property
    def dtype(self) -> torch.dtype:
        """Of the weights."""
        return self._embeddings.dtype

    def embedded(self, tokens: Sequence[int]) -> torch.Tensor:
        """[len(tokens), D]."""
        return self._embeddings[torch.tensor(tokens, device=self.device, dtype=torch.long)]

    def scores(self, row: torch.Tensor) -> torch.Tensor:
        """[D] behind the last norm -> [tokens] float32."""
        return (self._head @ row).float()


def load_language(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> tuple[Mixture, Words]:
    """Return the language model, and its words.

    Args:
        checkpoint: its folder, as the next.
        config: of it.
        device: of the weights, as the next.
        dtype: float32 or bfloat16.

    Raises:
        ConfigError: weights are missing or of another shape.
    """
    tensors, words = {}, {}
    for name, tensor in read_tensors(checkpoint, "language_model.", WEIGHTS):
        placed = tensor.to(device, dtype)
        published = f"language_model.{name}"
        if published in (EMBEDDINGS, HEAD):
            words[published] = placed
        else:
            tensors[mixture_name(published)] = placed
    shape = (config.language.vocabulary, config.language.width)
    for name in (EMBEDDINGS, HEAD):
        if name not in words or words[name].shape != shape:
            raise ConfigError(f"{checkpoint}: {name} must be there, as {list(shape)}")
    with torch.device("meta"):
        mixture = Mixture(config.language)
    fill(mixture, tensors.items(), checkpoint)
    return mixture, Words(words[EMBEDDINGS], words[HEAD])


def mixture_name(published: str) -> str:
    """Here each set of weights is a part of its own."""
    part = "drawn" if DRAWN in published else "plain"
    return f"{part}.{published.removeprefix(MODEL).replace(DRAWN, '')}"


def load_latent_tokens(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> LatentTokens:
    """Return what turns latents into tokens and back; raises as `load_language`."""
    tensors = _tensors(checkpoint, LATENTS, device, dtype)
    numbers = _read_side(tensors, "into.weight", checkpoint, dim=1)
    with torch.device("meta"):
        network = LatentTokens(numbers, config.language.width, _table(tensors, checkpoint))
    fill(network, tensors.items(), checkpoint)
    return network


def load_vision(
    checkpoint: Path, config: BagelConfig, device: torch.device, dtype: torch.dtype
) -> Vision:
    """Return the vision transformer with its connector; raises as `load_language`."""
    tensors = _tensors(checkpoint, VISION, device, dtype)
    with torch.device("meta"):
        vision = Vision(config.vision, config.language.width, _table(tensors, checkpoint))
    fill(vision, tensors.items(), checkpoint)
    return vision


def latent_side(checkpoint: Path) -> int:
    """How many tokens a side of a picture may have.

    Raises:
        ConfigError: as `load_language`.
    """
    tensors = dict(read_tensors(checkpoint, "latent_pos_embed.", WEIGHTS))
    return math.isqrt(_table(tensors, checkpoint))


def _tensors(
    checkpoint: Path, names: Mapping[str, str], device: torch.device, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    begins = re.compile("|".join(re.escape(name) for name in names))
    prefixes = {name.partition(".")[0] + "." for name in names}
    return {
        begins.sub(lambda found: names[found[0]], prefix + name, count=1): tensor.to(device, dtype)
        for prefix in sorted(prefixes)
        for name, tensor in read_tensors(checkpoint, prefix, WEIGHTS)
    }


def _table(tensors: Mapping[str, torch.Tensor], checkpoint: Path) -> int:
    """Rows of the table of positions, which is square."""
    rows = _read_side(tensors, TABLE, checkpoint, dim=0)
    if math.isqrt(rows) ** 2 != rows:
        raise ConfigError(f"{checkpoint}: {TABLE} has {rows} rows, not those of a square")
    return rows


def _read_side(tensors: Mapping[str, torch.Tensor], name: str, checkpoint: Path, dim: int) -> int:
    if name not in tensors:
        raise ConfigError(f"{checkpoint}: tensor {name} is missing")
    return int(tensors[name].shape[dim])
