"""Write a whole checkpoint folder."""

from __future__ import annotations

import zlib
from pathlib import Path

import numpy as np
import torch
from safetensors.torch import load_file, save_file

from cantata_layers.random_files import write_json
from cantata_layers.random_qwen_tokenizer import write_qwen_tokenizer
from cantata_layers.random_tensors import write_tensors
from cantata_models.qwen25_omni.random_checkpoint.configs import (
    CHAT_TEMPLATE,
    PREPROCESSOR_CONFIG,
    TINY,
    Qwen25OmniShape,
    generation_config,
    model_config,
    token_ids,
)
from cantata_models.qwen25_omni.random_checkpoint.tensors import checkpoint_tensors
from cantata_models.qwen25_omni.speakers import FILE

SPEAKERS = {"Chelsie": ("<chelsie>", 57), "Ethan": ("<ethan>", 44)}
"""With the token that announces each, and the frames of its spectrogram."""
VECTOR_SIZE, MELS = 192, 80


def write_checkpoint(
    folder: Path,
    shape: Qwen25OmniShape,
    seed: int,
    dtype: torch.dtype = torch.float32,
    *,
    end_gain: float = 1.0,
) -> Path:
    """Write a checkpoint into `folder` and return it.

    Args:
        folder: made if it is missing.
        shape: one of `configs`.
        seed: of all weights.
        dtype: of all weights.
        end_gain: of the row that scores the end of an answer.
    """
    folder.mkdir(parents=True, exist_ok=True)
    config = model_config(shape)
    write_json(folder / "config.json", config)
    write_json(folder / "generation_config.json", generation_config(shape))
    write_json(folder / "preprocessor_config.json", PREPROCESSOR_CONFIG)
    write_json(folder / "chat_template.json", {"chat_template": CHAT_TEMPLATE})
    write_qwen_tokenizer(folder, token_ids(shape), {"processor_class": "Qwen2_5OmniProcessor"})
    path = folder / "model.safetensors"
    write_tensors(path, checkpoint_tensors(config), seed, dtype)
    if end_gain != 1.0:
        _scale_end(path, token_ids(shape)["<|im_end|>"], end_gain)
    write_speakers(folder / FILE, token_ids(shape), seed)
    return folder


def _scale_end(path: Path, token: int, gain: float) -> None:
    tensors = load_file(path)
    tensors["thinker.lm_head.weight"][token] *= gain
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def write_speakers(path: Path, tokens: dict[str, int], seed: int) -> None:
    """Write spk_dict.pt."""
    speakers = {}
    for name, (token, frames) in SPEAKERS.items():
        source = np.random.RandomState(zlib.crc32(f"{seed}:{name}".encode()))
        vector = source.random_sample((1, VECTOR_SIZE)) * 4 - 2
        # Each band of the spectrogram has a level of its own, as a voice's does.
        level = source.random_sample((1, 1, MELS)) * 4 - 7
        mel = level + source.random_sample((1, frames, MELS)) * 3
        speakers[name] = {
            "bos_token": tokens[token],
            "cond": torch.from_numpy(vector).float(),
            "ref_mel": torch.from_numpy(mel).float(),
        }
    torch.save(speakers, path)


def write_tiny(folder: Path) -> None:
    """Write a tiny checkpoint that speaks."""
    write_checkpoint(folder, TINY, seed=1)
