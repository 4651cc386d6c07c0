"""Writes a GGUF file as the files of a Hugging Face folder."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import torch
from safetensors.torch import save_file
from transformers import GenerationConfig

from cantata_layers.checkpoint import INDEX_FILE, SINGLE_FILE, STEM
from cantata_models.text_model.config import CONFIG
from cantata_models.text_model.gguf.config import make_config
from cantata_models.text_model.gguf.reader import GgufFile
from cantata_models.text_model.gguf.tokenizer import make_tokenizer
from cantata_models.text_model.gguf.weights import name_tensors, read_weights

SHARD_BYTES = 2 << 30
"""Most of the weights that are in memory at once."""
_ENDS = frozenset(
    {
        "<|endoftext|>",
        "<|im_end|>",
        "<|eot_id|>",
        "<|eom_id|>",
        "<|end_of_text|>",
        "<end_of_turn>",
        "<eos>",
        "</s>",
    }
)
"""Tokens that end an answer wherever a vocabulary has them: files name only one of them."""


def convert(file: Path, folder: Path, shard_bytes: int = SHARD_BYTES) -> None:
    """Write the folder's files. Tensors keep float32 where the file has it, and are bfloat16 else.

    Args:
        file: in GGUF.
        folder: exists and is empty.
        shard_bytes: a file of weights has at most so many, if it holds more than one tensor.

    Raises:
        ConfigError: the file is damaged, or not one that can be served.
    """
    source = GgufFile(file)
    config = make_config(source)
    name_tensors(source)  # before minutes of work
    tokenizer = make_tokenizer(source)
    tokenizer.save_pretrained(folder)
    dtype = torch.float32 if source.is_float32 else torch.bfloat16
    _write_weights(read_weights(source, dtype), folder, shard_bytes)
    ends = {config.eos_token_id, *_find_ends(source, tokenizer.get_added_vocab())} - {None}
    make_defaults: Any = GenerationConfig
    make_defaults(
        bos_token_id=config.bos_token_id,
        eos_token_id=sorted(ends) or None,
        pad_token_id=config.pad_token_id,
    ).save_pretrained(folder)
    (folder / CONFIG).write_text(config.to_json_string(), "utf-8")


def _find_ends(source: GgufFile, added: dict[str, int]) -> Iterator[int]:
    """Yield the tokens that end an answer: those of the file's own fields, and the usual ones."""
    for key in ("eot", "eom"):
        token = source.find(f"tokenizer.ggml.{key}_token_id", int)
        if token is not None:
            yield token
    yield from (token for text, token in added.items() if text in _ENDS)


def _write_weights(
    tensors: Iterator[tuple[str, torch.Tensor]], folder: Path, shard_bytes: int
) -> None:
    """Write one file, or several with an index."""
    shards: list[list[str]] = []
    held: dict[str, torch.Tensor] = {}
    size = total = 0

    def write() -> None:
        name = f"{STEM}-{len(shards) + 1:05d}.safetensors"
        save_file(held, folder / name, {"format": "pt"})
        shards.append(list(held))
        held.clear()

    for name, tensor in tensors:
        if held and size + tensor.nbytes > shard_bytes:
            write()
            size = 0
        held[name] = tensor
        size += tensor.nbytes
        total += tensor.nbytes
    write()
    if len(shards) == 1:
        (folder / f"{STEM}-00001.safetensors").rename(folder / SINGLE_FILE)
        return
    places = {
        name: f"{STEM}-{number:05d}.safetensors"
        for number, names in enumerate(shards, 1)
        for name in names
    }
    index = {"metadata": {"total_size": total}, "weight_map": places}
    (folder / INDEX_FILE).write_text(json.dumps(index), "utf-8")
