"""Write a whole checkpoint folder."""

from __future__ import annotations

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
    ORDINARY,
    PREPROCESSOR,
    PROCESSOR,
    TINY,
    TOKENIZER_FIELDS,
    WORDS,
    CheckpointSize,
    generation_config,
    published_config,
    saved_again_config,
    token_ids,
)
from cantata_models.qwen3_asr.random_checkpoint.tensors import checkpoint_tensors, to_published

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
    tensors = {
        to_published(spec) if is_published else spec.name: _drawn(spec, seed).to(dtype)
        for spec in checkpoint_tensors(again, is_tied=is_tied)
    }
    path = folder / "model.safetensors"
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)
    return folder


def _drawn(spec: TensorSpec, seed: int) -> torch.Tensor:
    drawn = draw(spec, seed)
    if spec.name == f"{SAVED_AGAIN.head}weight":
        drawn[[token_ids()[end] for end in ENDS]] *= np.float32(END_GAIN)
    return torch.from_numpy(drawn)
