"""Writes a tokenizer's folder."""

from __future__ import annotations

import json
import math
from pathlib import Path
from typing import Any

import torch

from cantata_layers.checkpoint import INDEX_FILE
from cantata_layers.random_tensors import write_tensors
from cantata_models.moss_tts.random_checkpoint.codec_configs import MossCodecShape, codec_config
from cantata_models.moss_tts.random_checkpoint.codec_layout import codec_tensors


def write_codec(folder: Path, shape: MossCodecShape, seed: int) -> Path:
    """Write a tokenizer of this shape into `folder` and return it: as published, in float32."""
    folder.mkdir(parents=True, exist_ok=True)
    write_config(folder, shape)
    specs = list(codec_tensors(codec_config(shape)))
    files: dict[str, str] = {}
    size = -(-len(specs) // shape.shards)
    for index in range(shape.shards):
        name = f"model-{index + 1:05}-of-{shape.shards:05}.safetensors"
        shard = specs[index * size : (index + 1) * size]
        write_tensors(folder / name, shard, seed, torch.float32)
        files |= {spec.name: name for spec in shard}
    values = sum(math.prod(spec.shape) for spec in specs)
    index_file = {"metadata": {"total_size": 4 * values}, "weight_map": files}
    _write_json(folder / INDEX_FILE, index_file)
    return folder


def write_config(folder: Path, shape: MossCodecShape) -> None:
    """Write only the tokenizer's config.json."""
    _write_json(folder / "config.json", codec_config(shape))


def _write_json(path: Path, value: Any) -> None:
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")
