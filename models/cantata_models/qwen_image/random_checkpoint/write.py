"""Write a whole checkpoint folder."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from pathlib import Path

import torch

from cantata_layers.checkpoint import SINGLE_FILE
from cantata_layers.json_fields import read_json
from cantata_layers.qwen_image.config import WEIGHTS, TransformerConfig, read_transformer
from cantata_layers.qwen_image.transformer.network import weight_shapes
from cantata_layers.random_rules import Rules, gain, norm, specify
from cantata_layers.random_tensors import TensorSpec, write_json, write_tensors
from cantata_models.qwen_image.random_checkpoint import configs
from cantata_models.qwen_image.random_checkpoint.configs import write_tokenizer
from cantata_models.qwen_image.random_checkpoint.shapes import (
    TINY,
    VARIANTS,
    QwenImageShape,
    Variant,
    text_tensors,
    vae_tensors,
)

SHARD = 120
"""Tensors of a file of the denoiser's weights."""
DENOISER_RULES: Rules = {
    r"timestep_embedder.*\.weight$": gain(2.0),
    r"attn\.norm_\w+\.weight$": norm(1.5),
}


def write_checkpoint(
    folder: Path,
    variant: Variant,
    seed: int,
    shape: QwenImageShape = TINY,
    dtype: torch.dtype = torch.float32,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        variant: one of `shapes.VARIANTS`.
        shape: one of `shapes.SIZES`.
    """
    for part in ("transformer", "vae", "scheduler", "text_encoder", "tokenizer"):
        (folder / part).mkdir(parents=True, exist_ok=True)
    write_json(folder / "model_index.json", configs.index(variant))
    write_json(folder / "transformer" / "config.json", configs.transformer(shape, variant))
    write_json(folder / "vae" / "config.json", configs.vae(shape))
    write_json(folder / "scheduler" / "scheduler_config.json", configs.SCHEDULE)
    text = configs.text_encoder(shape)
    write_json(folder / "text_encoder" / "config.json", text)
    write_tokenizer(folder / "tokenizer")
    if variant.family.takes_pictures:
        write_tokenizer(folder / "processor")
        write_json(folder / "processor" / "preprocessor_config.json", configs.PREPROCESSOR)
    config = read_transformer(read_json(folder / "transformer" / "config.json"))
    specs = list(denoiser_tensors(config))
    shards = [specs[start : start + SHARD] for start in range(0, len(specs), SHARD)]
    _write_shards(folder / "transformer", shards, seed, dtype)
    path = folder / "vae" / f"{WEIGHTS}.safetensors"
    write_tensors(path, vae_tensors(shape), seed, dtype)
    write_tensors(folder / "text_encoder" / SINGLE_FILE, text_tensors(text), seed, dtype)
    return folder


def denoiser_tensors(config: TransformerConfig) -> Iterator[TensorSpec]:
    """Yield every tensor of a transformer/ folder."""
    yield from specify(weight_shapes(config), DENOISER_RULES)


def _write_shards(
    folder: Path, shards: Sequence[Sequence[TensorSpec]], seed: int, dtype: torch.dtype
) -> None:
    places: dict[str, str] = {}
    for number, specs in enumerate(shards, start=1):
        name = f"{WEIGHTS}-{number:05}-of-{len(shards):05}.safetensors"
        write_tensors(folder / name, specs, seed, dtype)
        places |= {spec.name: name for spec in specs}
    size = sum(math.prod(spec.shape) for specs in shards for spec in specs) * dtype.itemsize
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    write_json(folder / f"{WEIGHTS}.safetensors.index.json", index)


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint that draws."""
    write_checkpoint(folder, VARIANTS["image"], seed=1)
