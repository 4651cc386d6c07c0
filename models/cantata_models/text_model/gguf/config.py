"""The architectures that are read, and their config.json."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from transformers import Gemma3TextConfig, LlamaConfig, Qwen2Config, Qwen3Config

from cantata.contract.data.errors import ConfigError
from cantata_models.text_model.gguf.reader import ARCHITECTURE, GgufFile

EMBEDDING, OUTPUT, ROPE_FACTORS = "token_embd.weight", "output.weight", "rope_freqs.weight"
_LLAMA3 = {
    "low_freq_factor": 1.0,
    "high_freq_factor": 4.0,
    "original_max_position_embeddings": 8192,
}
"""What every Llama 3.1 and later has; the files hold only the factors that follow from it."""
_GEMMA_PERIOD = 6
"""Each sixth layer of Gemma 3 attends to everything."""
_GEMMA_LOCAL_THETA = 10_000.0
_GEMMA_27B_LAYERS = 62
"""Only this size scales its queries by the width of the model."""


def make_config(file: GgufFile) -> Any:
    """Return the file's configuration as transformers has it. Raises ConfigError: the architecture
    is not read here, or a value is missing or not valid."""
    make = _MAKERS.get(file.architecture)
    if make is None:
        raise ConfigError(
            f"{file.path}: {ARCHITECTURE} is {file.architecture!r}; valid: {sorted(_MAKERS)}"
        )
    config = make(file, _read_sizes(file))
    config.architectures = [_NETWORKS[file.architecture]]
    config.dtype = "float32" if file.is_float32 else "bfloat16"
    return config


def read_heads(file: GgufFile) -> tuple[int, int]:
    """Return the numbers of heads of queries, and of keys and values."""
    heads = file.own("attention.head_count", int)
    return heads, file.own("attention.head_count_kv", int, heads)


def _read_sizes(file: GgufFile) -> dict[str, Any]:
    heads, kv_heads = read_heads(file)
    width = file.own("embedding_length", int)
    if heads < 1 or width < 1:
        raise ConfigError(f"{file.path}: {heads} heads of a width of {width}")
    sizes: dict[str, Any] = {
        "vocab_size": file.shape(EMBEDDING)[0],
        "hidden_size": width,
        "intermediate_size": file.own("feed_forward_length", int),
        "num_hidden_layers": file.own("block_count", int),
        "num_attention_heads": heads,
        "num_key_value_heads": kv_heads,
        "max_position_embeddings": file.own("context_length", int),
        "rms_norm_eps": file.own("attention.layer_norm_rms_epsilon", float),
        "tie_word_embeddings": OUTPUT not in file.tensors,
        "rope_parameters": _read_rotation(file),
    }
    for name in ("bos", "eos"):
        sizes[f"{name}_token_id"] = file.find(f"tokenizer.ggml.{name}_token_id", int)
    sizes["pad_token_id"] = file.find("tokenizer.ggml.padding_token_id", int)
    return sizes


def _read_head_dim(file: GgufFile, sizes: Mapping[str, Any]) -> int:
    usual: int = sizes["hidden_size"] // sizes["num_attention_heads"]
    return file.own("attention.key_length", int, usual)


def _read_rotation(file: GgufFile) -> dict[str, Any]:
    kind = file.own("rope.scaling.type", str, "none")
    rotation: dict[str, Any] = {
        "rope_type": "default",
        "rope_theta": file.own("rope.freq_base", float, 10_000.0),
    }
    if ROPE_FACTORS in file.tensors:
        return _read_llama3_rotation(file, rotation)
    if kind == "none":
        return rotation
    if kind not in ("linear", "yarn"):
        raise ConfigError(
            f"{file.path}: rope.scaling.type is {kind!r}; valid: 'none', 'linear', 'yarn'"
        )
    rotation |= {"rope_type": kind, "factor": file.own("rope.scaling.factor", float)}
    if kind == "yarn":
        original = file.own("rope.scaling.original_context_length", int)
        rotation["original_max_position_embeddings"] = original
    return rotation


def _read_llama3_rotation(file: GgufFile, rotation: dict[str, Any]) -> dict[str, Any]:
    """Find the scale whose factors the file holds."""
    factors = file.read(ROPE_FACTORS)
    scale = float(factors.max())
    pairs = np.arange(len(factors)) / len(factors)
    lengths = 2 * math.pi * rotation["rope_theta"] ** pairs
    low, high = _LLAMA3["low_freq_factor"], _LLAMA3["high_freq_factor"]
    turns = _LLAMA3["original_max_position_embeddings"] / lengths
    smooth = np.clip((turns - low) / (high - low), 0, 1)
    expected = 1 / ((1 - smooth) / scale + smooth)
    if not np.allclose(factors, expected, rtol=1e-4):
        raise ConfigError(f"{file.path}: {ROPE_FACTORS} is not the one of Llama 3.1 or later")
    return {**rotation, "rope_type": "llama3", "factor": scale, **_LLAMA3}


def _make_llama(file: GgufFile, sizes: dict[str, Any]) -> Any:
    bias = "blk.0.attn_q.bias" in file.tensors
    return LlamaConfig(**sizes, head_dim=_read_head_dim(file, sizes), attention_bias=bias)


def _make_qwen2(file: GgufFile, sizes: dict[str, Any]) -> Any:
    return Qwen2Config(**sizes)


def _make_qwen3(file: GgufFile, sizes: dict[str, Any]) -> Any:
    return Qwen3Config(**sizes, head_dim=_read_head_dim(file, sizes))


def _make_gemma3(file: GgufFile, sizes: dict[str, Any]) -> Any:
    layers, head_dim = sizes["num_hidden_layers"], _read_head_dim(file, sizes)
    scaled_by_width = layers == _GEMMA_27B_LAYERS
    whole = sizes.pop("rope_parameters")
    local = file.own("rope.freq_base_swa", float, _GEMMA_LOCAL_THETA)
    kinds = [
        "sliding_attention" if (layer + 1) % _GEMMA_PERIOD else "full_attention"
        for layer in range(layers)
    ]
    return Gemma3TextConfig(
        **sizes,
        head_dim=head_dim,
        query_pre_attn_scalar=(
            sizes["hidden_size"] // sizes["num_attention_heads"] if scaled_by_width else head_dim
        ),
        sliding_window=file.own("attention.sliding_window", int),
        layer_types=kinds,
        rope_parameters={
            "full_attention": whole,
            "sliding_attention": {"rope_type": "default", "rope_theta": local},
        },
    )


_MAKERS: Mapping[str, Callable[[GgufFile, dict[str, Any]], Any]] = {
    "llama": _make_llama,
    "qwen2": _make_qwen2,
    "qwen3": _make_qwen3,
    "gemma3": _make_gemma3,
}
_NETWORKS = {
    "llama": "LlamaForCausalLM",
    "qwen2": "Qwen2ForCausalLM",
    "qwen3": "Qwen3ForCausalLM",
    "gemma3": "Gemma3ForCausalLM",
}
