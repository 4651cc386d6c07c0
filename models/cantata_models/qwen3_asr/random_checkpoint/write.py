"""Write a whole checkpoint folder."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import save_file

from cantata_layers.random_files import write_json
from cantata_layers.random_qwen_tokenizer import write_qwen_tokenizer
from cantata_layers.random_tensors import TensorSpec, draw
from cantata_models.qwen3_asr.config import SAVED_AGAIN
from cantata_models.qwen3_asr.random_checkpoint.configs import (
    CHAT_TEMPLATE,
    CLASSES,
    ORDINARY,
    PREPROCESSOR,
    PROCESSOR,
    TINY,
    TOKENIZER_FIELDS,
    WORDS,
    CheckpointSize,
    aligner_config,
    generation_config,
    published_config,
    saved_again_aligner_config,
    saved_again_config,
    token_ids,
)
from cantata_models.qwen3_asr.random_checkpoint.tensors import (
    aligner_tensors,
    checkpoint_tensors,
    to_published,
)

END_GAIN = 2.0
"""Of the rows that score the end of an answer: many end within a few steps."""
ENDS = ("<|im_end|>", "<|endoftext|>")


def write_checkpoint(
    folder: Path,
    seed: int,
    *,
    size: CheckpointSize = TINY,
    dtype: torch.dtype = torch.float32,
    is_published: bool = True,
    is_tied: bool = False,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        seed: of all weights, which both forms have in common.
        size: one of `configs`.
        dtype: of all weights.
        is_published: in the publisher's form; otherwise as transformers saves it.
        is_tied: whether its head is its table of embeddings.
    """
    folder.mkdir(parents=True, exist_ok=True)
    again = saved_again_config(size, is_tied=is_tied)
    write_json(folder / "generation_config.json", generation_config())
    write_qwen_tokenizer(folder, token_ids(), TOKENIZER_FIELDS, WORDS, ORDINARY)
    if is_published:
        write_json(folder / "config.json", published_config(size, is_tied=is_tied))
        write_json(folder / "preprocessor_config.json", PREPROCESSOR)
        write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    else:
        write_json(folder / "config.json", again)
        write_json(folder / "processor_config.json", PROCESSOR)
        (folder / "chat_template.jinja").write_text(CHAT_TEMPLATE, encoding="utf-8")
    _save(
        folder,
        {
            to_published(spec) if is_published else spec.name: _drawn(spec, seed).to(dtype)
            for spec in checkpoint_tensors(again, is_tied=is_tied)
        },
    )
    return folder


def write_aligner(folder: Path, seed: int, *, is_published: bool = True) -> Path:
    """Write a tiny forced aligner into `folder` and return it; otherwise as `write_checkpoint`."""
    folder.mkdir(parents=True, exist_ok=True)
    write_qwen_tokenizer(folder, token_ids(), TOKENIZER_FIELDS, WORDS, ORDINARY)
    if is_published:
        write_json(folder / "config.json", aligner_config(TINY))
        write_json(folder / "preprocessor_config.json", PREPROCESSOR)
    else:
        write_json(folder / "config.json", saved_again_aligner_config(TINY))
        write_json(folder / "processor_config.json", PROCESSOR)
    specs = aligner_tensors(saved_again_config(TINY, is_tied=False), CLASSES)
    _save(
        folder,
        {
            to_published(spec)
            if is_published
            else spec.name.replace(SAVED_AGAIN.head, "score."): torch.from_numpy(draw(spec, seed))
            for spec in specs
        },
    )
    return folder


def _save(folder: Path, tensors: Mapping[str, torch.Tensor]) -> None:
    path = folder / "model.safetensors"
    save_file(dict(tensors), path, metadata={"format": "pt"})
    path.chmod(0o644)


def _drawn(spec: TensorSpec, seed: int) -> torch.Tensor:
    drawn = draw(spec, seed)
    if spec.name == f"{SAVED_AGAIN.head}weight":
        drawn[[token_ids()[end] for end in ENDS]] *= np.float32(END_GAIN)
    return torch.from_numpy(drawn)


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint."""
    write_checkpoint(folder, seed=1)
