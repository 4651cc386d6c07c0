"""Writes a whole checkpoint folder."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import torch
from safetensors.torch import load_file

from cantata_layers.random_files import write_json
from cantata_layers.random_tensors import write_tensors
from cantata_models.voxcpm2.random_checkpoint.codec_tensors import codec_tensors
from cantata_models.voxcpm2.random_checkpoint.configs import TINY
from cantata_models.voxcpm2.random_checkpoint.talker_layout import talker_tensors
from cantata_models.voxcpm2.random_checkpoint.tokenizer import write_tokenizer

TALKER_FILE, CODEC_FILE = "model.safetensors", "audiovae.safetensors"


def write_checkpoint(
    folder: Path, config: dict[str, Any], seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of one of `configs` into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    write_json(folder / "config.json", config)
    write_tokenizer(folder)
    write_tensors(folder / TALKER_FILE, talker_tensors(config), seed, dtype)
    # The published autoencoder is float32, whatever the talker's dtype.
    write_tensors(folder / CODEC_FILE, codec_tensors(folder), seed, torch.float32)
    return folder


def use_pickles(folder: Path) -> Path:
    """Turn a checkpoint's files of weights into the older format, and return the folder."""
    for name, pickled in ((TALKER_FILE, "pytorch_model.bin"), (CODEC_FILE, "audiovae.pth")):
        torch.save({"state_dict": load_file(folder / name)}, folder / pickled)
        (folder / name).unlink()
    return folder


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint."""
    write_checkpoint(folder, TINY, seed=3)
