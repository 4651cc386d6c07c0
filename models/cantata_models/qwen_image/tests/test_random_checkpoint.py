"""Random checkpoints have the published layout."""

from __future__ import annotations

import math
from pathlib import Path

import pytest
import torch

from cantata_layers.checkpoint import read_tensors
from cantata_layers.json_fields import JsonFields
from cantata_layers.qwen_image.config import WEIGHTS, read_transformer
from cantata_layers.random_tensors import TensorSpec
from cantata_models.qwen_image.random_checkpoint import configs
from cantata_models.qwen_image.random_checkpoint.shapes import (
    PUBLISHED,
    VARIANTS,
    text_tensors,
    vae_tensors,
)
from cantata_models.qwen_image.random_checkpoint.write import denoiser_tensors, write_checkpoint

DENOISER = read_transformer(JsonFields(configs.transformer(PUBLISHED, VARIANTS["image"]), "config"))


def test_the_same_seed_gives_the_same_weights(tmp_path: Path) -> None:
    one, same, other = (
        dict(read_tensors(folder / "transformer", stem=WEIGHTS))
        for folder in (
            write_checkpoint(tmp_path / str(number), VARIANTS["image"], seed)
            for number, seed in enumerate((1, 1, 2))
        )
    )
    assert all(torch.equal(one[name], same[name]) for name in one)
    assert not any(torch.equal(one[name], other[name]) for name in one)


def parameters(specs: list[TensorSpec]) -> float:
    assert len({spec.name for spec in specs}) == len(specs)
    return sum(math.prod(spec.shape) for spec in specs)


@pytest.mark.parametrize(
    ("part", "billions"),
    [
        (list(denoiser_tensors(DENOISER)), 20.43),
        (list(vae_tensors(PUBLISHED)), 0.127),
        (list(text_tensors(configs.text_encoder(PUBLISHED))), 7.10),
    ],
)
def test_the_published_size(part: list[TensorSpec], billions: float) -> None:
    assert parameters(part) / 1e9 == pytest.approx(billions, rel=0.01)
