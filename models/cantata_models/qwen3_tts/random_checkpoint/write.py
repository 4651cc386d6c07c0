"""Write a whole checkpoint folder."""

from __future__ import annotations

from pathlib import Path

import torch

from cantata_layers.random_files import write_json
from cantata_layers.random_tensors import write_tensors
from cantata_models.qwen3_tts.random_checkpoint.codec_tensors import codec_tensors
from cantata_models.qwen3_tts.random_checkpoint.configs import (
    FEATURE_EXTRACTOR_CONFIG,
    GENERATION_CONFIG,
    TINY_SMALL,
    Shape,
    codec_config,
    model_config,
)
from cantata_models.qwen3_tts.random_checkpoint.talker_layout import talker_tensors
from cantata_models.qwen3_tts.random_checkpoint.tokenizer import write_tokenizer


def write_checkpoint(
    folder: Path, shape: Shape, kind: str, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of one of `configs.KINDS` into `folder` and return it."""
    codec_folder = folder / "speech_tokenizer"
    codec_folder.mkdir(parents=True, exist_ok=True)
    config, codec = model_config(shape, kind), codec_config(shape)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", GENERATION_CONFIG)
    write_json(codec_folder / "config.json", codec)
    write_json(codec_folder / "preprocessor_config.json", FEATURE_EXTRACTOR_CONFIG)
    write_tokenizer(folder, shape.first_special)
    write_tensors(folder / "model.safetensors", talker_tensors(config), seed, dtype)
    # The published codec is float32, whatever the talker's dtype.
    codec_file = codec_folder / "model.safetensors"
    write_tensors(codec_file, codec_tensors(folder), seed, torch.float32)
    return folder


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint with stock voices."""
    write_checkpoint(folder, TINY_SMALL, "custom_voice", seed=1)
