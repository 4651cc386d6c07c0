"""Write a whole checkpoint folder."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from cantata_layers.checkpoint import INDEX_FILE
from cantata_layers.random_files import write_json
from cantata_layers.random_tensors import TensorSpec, draw
from cantata_models.qwen3_omni.random_checkpoint.configs import (
    CHAT_TEMPLATE,
    GENERATION_CONFIG,
    PREPROCESSOR_CONFIG,
    model_config,
)
from cantata_models.qwen3_omni.random_checkpoint.shapes import TINY, Qwen3OmniShape
from cantata_models.qwen3_omni.random_checkpoint.tensors import checkpoint_tensors
from cantata_models.qwen3_omni.random_checkpoint.tokens import write_tokenizer

ANSWER_END_GAIN, SPEECH_END_GAIN = 1.7, 1.4
"""Of the rows that score the end of an answer and of its speech: many end within a few steps."""

Endings = Mapping[str, tuple[int, float]]
"""A head -> the row of its end, and the gain of that."""


def write_checkpoint(
    folder: Path,
    shape: Qwen3OmniShape,
    seed: int,
    dtype: torch.dtype = torch.float32,
    *,
    speaks: bool = True,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        shape: one of `shapes`.
        seed: of all weights.
        dtype: of all weights.
        speaks: with talker and code2wav; otherwise as Thinking and Captioner are published.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(shape, speaks)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", GENERATION_CONFIG)
    write_json(folder / "preprocessor_config.json", PREPROCESSOR_CONFIG)
    write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    write_tokenizer(folder)
    endings = {"thinker.lm_head.weight": (config["im_end_token_id"], ANSWER_END_GAIN)}
    specs = list(checkpoint_tensors(config))
    shards = [[spec for spec in specs if spec.name.startswith("thinker.")]]
    if speaks:
        shards.append([spec for spec in specs if not spec.name.startswith("thinker.")])
        end = config["talker_config"]["codec_eos_token_id"]
        endings["talker.codec_head.weight"] = (end, SPEECH_END_GAIN)
    _write_shards(folder, shards, endings, seed, dtype)
    return folder


def _write_shards(
    folder: Path,
    shards: list[list[TensorSpec]],
    endings: Endings,
    seed: int,
    dtype: torch.dtype,
) -> None:
    places: dict[str, str] = {}
    size = 0
    for number, specs in enumerate(shards, start=1):
        name = f"model-{number:05}-of-{len(shards):05}.safetensors"
        tensors = _drawn(specs, endings, seed, dtype)
        save_file(tensors, folder / name, metadata={"format": "pt"})
        (folder / name).chmod(0o644)
        places |= dict.fromkeys(tensors, name)
        size += sum(tensor.nbytes for tensor in tensors.values())
    index = {"metadata": {"total_size": size}, "weight_map": dict(sorted(places.items()))}
    write_json(folder / INDEX_FILE, index)


def _drawn(
    specs: Iterable[TensorSpec], endings: Endings, seed: int, dtype: torch.dtype
) -> dict[str, torch.Tensor]:
    tensors = {}
    for spec in specs:
        values = draw(spec, seed)
        if spec.name in endings:
            row, gain = endings[spec.name]
            values[row] *= np.float32(gain)
        tensors[spec.name] = torch.from_numpy(values).to(dtype)
    return tensors


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint that speaks."""
    write_checkpoint(folder, TINY, seed=1)
