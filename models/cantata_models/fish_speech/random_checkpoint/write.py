"""Write a whole checkpoint folder."""

from __future__ import annotations

from collections.abc import Iterable
from pathlib import Path

import torch
from safetensors.torch import save_file

from cantata_layers.checkpoint import SINGLE_FILE
from cantata_layers.random_files import write_json
from cantata_layers.random_tensors import TensorSpec, draw
from cantata_models.fish_speech.codec.tensors import FILE as CODEC_FILE
from cantata_models.fish_speech.config import Layout
from cantata_models.fish_speech.networks.parameters import S1_FILE
from cantata_models.fish_speech.random_checkpoint.codec_layout import codec_tensors
from cantata_models.fish_speech.random_checkpoint.shapes import (
    TINY_S1,
    TINY_S2,
    Shape,
    model_config,
)
from cantata_models.fish_speech.random_checkpoint.talker_layout import talker_tensors
from cantata_models.fish_speech.random_checkpoint.tokenizers import special_ids, write_tokenizer
from cantata_models.fish_speech.text.special_tokens import IM_END


def write_checkpoint(
    folder: Path, shape: Shape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    vocabulary = write_tokenizer(folder, shape)
    write_json(folder / "config.json", model_config(shape, vocabulary))
    tensors = _draw(talker_tensors(shape, vocabulary), seed, dtype)
    end = special_ids(shape)[IM_END]
    for name, tensor in tensors.items():
        if name.endswith("embeddings.weight" if shape.tied else "output.weight") and (
            len(tensor) == vocabulary
        ):
            tensor[end] *= shape.end_gain
    if shape.layout is Layout.S2:
        path = folder / SINGLE_FILE
        save_file(tensors, path, metadata={"format": "pt"})
        path.chmod(0o644)
    else:
        torch.save(tensors, folder / S1_FILE)
    # The published codec is float32, whatever the talker's dtype.
    torch.save(_draw(codec_tensors(shape.codec), seed, torch.float32), folder / CODEC_FILE)
    return folder


def _draw(specs: Iterable[TensorSpec], seed: int, dtype: torch.dtype) -> dict[str, torch.Tensor]:
    return {spec.name: torch.from_numpy(draw(spec, seed)).to(dtype) for spec in specs}


def write_tiny_s2(folder: Path) -> None:
    """Write a tiny checkpoint of S2."""
    write_checkpoint(folder, TINY_S2, seed=1)


def write_tiny_s1(folder: Path) -> None:
    """Write a tiny checkpoint of S1."""
    write_checkpoint(folder, TINY_S1, seed=1)
