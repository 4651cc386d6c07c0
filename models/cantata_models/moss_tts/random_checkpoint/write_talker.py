"""Writes a talker's folder in its published layout."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file

from cantata_layers.checkpoint import PICKLE_FILE, SINGLE_FILE
from cantata_layers.random_files import write_json
from cantata_layers.random_qwen_tokenizer import write_qwen_tokenizer
from cantata_layers.random_tensors import TensorSpec, draw
from cantata_models.moss_tts.random_checkpoint.sentencepiece_model import (
    CONTROL,
    write_sentencepiece,
)
from cantata_models.moss_tts.random_checkpoint.talker_configs import (
    LocalShape,
    NanoShape,
    local_config,
    nano_config,
)
from cantata_models.moss_tts.random_checkpoint.talker_layout import (
    STOP_HEAD,
    TEXT_TABLE,
    local_tensors,
    nano_tensors,
)

LEANING = 0.16
"""Mean of the row that scores going on; stopping's is its negative, so that it is the rarer one."""
Tensors = dict[str, torch.Tensor]


def write_local(
    folder: Path, shape: LocalShape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of MOSS-TTS-Local into `folder` and return it."""
    folder.mkdir(parents=True, exist_ok=True)
    config = local_config(shape)
    tensors = _draw(local_tensors(config), seed)
    _lean(tensors[STOP_HEAD], 0, 1)
    write_json(folder / "config.json", config | {"dtype": _name(dtype)})
    write_qwen_tokenizer(folder, shape.special_ids)
    path = folder / SINGLE_FILE
    save_file(_cast(tensors, dtype), path, metadata={"format": "pt"})
    path.chmod(0o644)
    return folder


def write_nano(
    folder: Path, shape: NanoShape, seed: int, dtype: torch.dtype = torch.float32
) -> Path:
    """Write a checkpoint of MOSS-TTS-Nano into `folder` and return it; it has its tied heads."""
    folder.mkdir(parents=True, exist_ok=True)
    config = nano_config(shape)
    tensors = _draw(nano_tensors(config), seed)
    slot, end = config["audio_assistant_slot_token_id"], config["audio_end_token_id"]
    _lean(tensors[TEXT_TABLE], slot, end)
    tensors = _cast(tensors, dtype)
    tensors["text_lm_head.weight"] = tensors[TEXT_TABLE]
    for book in range(config["n_vq"]):
        tensors[f"audio_lm_heads.{book}.weight"] = tensors[f"audio_embeddings.{book}.weight"]
    write_json(folder / "config.json", config | {"dtype": _name(dtype)})
    write_json(folder / "tokenizer_config.json", _nano_tokenizer_config())
    write_sentencepiece(folder / "tokenizer.model", shape.vocabulary)
    torch.save(tensors, folder / PICKLE_FILE)
    return folder


def _draw(specs: Iterable[TensorSpec], seed: int) -> Tensors:
    return {spec.name: torch.from_numpy(draw(spec, seed)) for spec in specs}


def _lean(table: torch.Tensor, go_on: int, stop: int) -> None:
    table[go_on] += LEANING
    table[stop] -= LEANING


def _cast(tensors: Mapping[str, torch.Tensor], dtype: torch.dtype) -> Tensors:
    return {name: tensor.to(dtype) for name, tensor in tensors.items()}


def _name(dtype: torch.dtype) -> str:
    return str(dtype).removeprefix("torch.")


def _nano_tokenizer_config() -> dict[str, Any]:
    added = {
        str(index): {
            "content": token,
            "lstrip": False,
            "normalized": False,
            "rstrip": False,
            "single_word": False,
            "special": True,
        }
        for index, token in enumerate(("<unk>", *CONTROL))
    }
    return {
        "added_tokens_decoder": added,
        "bos_token": "<s>",
        "clean_up_tokenization_spaces": False,
        "eos_token": "</s>",
        "model_max_length": 16_384,
        "pad_token": "<pad>",
        "tokenizer_class": "MossTTSNanoSentencePieceTokenizer",
        "unk_token": "<unk>",
    }
