"""The tensors, by transformers' names and in its layout."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

import torch

from cantata.contract.data.errors import ConfigError
from cantata_models.text_model.gguf.config import EMBEDDING, OUTPUT, ROPE_FACTORS, read_heads
from cantata_models.text_model.gguf.reader import GgufFile, list_blocks

_NORM = "output_norm.weight"
_OUTER = {
    EMBEDDING: "model.embed_tokens.weight",
    _NORM: "model.norm.weight",
    OUTPUT: "lm_head.weight",
}
_QUERIES, _KEYS = "attn_q", "attn_k"
_ATTENTION = {
    _QUERIES: "self_attn.q_proj",
    _KEYS: "self_attn.k_proj",
    "attn_v": "self_attn.v_proj",
    "attn_output": "self_attn.o_proj",
}
_SHARED = {
    "attn_norm": "input_layernorm",
    **_ATTENTION,
    "ffn_gate": "mlp.gate_proj",
    "ffn_up": "mlp.up_proj",
    "ffn_down": "mlp.down_proj",
}
_QK_NORMS = {"attn_q_norm": "self_attn.q_norm", "attn_k_norm": "self_attn.k_norm"}
_BLOCKS: Mapping[str, Mapping[str, str]] = {
    "llama": {**_SHARED, "ffn_norm": "post_attention_layernorm"},
    "qwen2": {**_SHARED, "ffn_norm": "post_attention_layernorm"},
    "qwen3": {**_SHARED, **_QK_NORMS, "ffn_norm": "post_attention_layernorm"},
    "gemma3": {
        **_SHARED,
        **_QK_NORMS,
        "post_attention_norm": "post_attention_layernorm",
        "ffn_norm": "pre_feedforward_layernorm",
        "post_ffw_norm": "post_feedforward_layernorm",
    },
}
_BIASED = {"llama": False, "qwen2": True}
"""Architectures whose attention may have biases, and whether it must have those of Q, K and V."""
_INTERLEAVED = "llama"
"""The architecture whose rows of queries and keys are stored in pairs that rotate together."""
_NORMS_FROM_ZERO = "gemma3"
"""The architecture whose norms multiply by 1 + weight, and whose files hold the sum."""


def name_tensors(file: GgufFile) -> dict[str, str]:
    """Return transformers' name for each of the file's tensors. Raises ConfigError: a tensor is
    missing, or unknown to the architecture."""
    block, biased = _BLOCKS[file.architecture], _BIASED.get(file.architecture)
    names: dict[str, str] = {}
    for name, layer, inner in list_blocks(file.tensors):
        part, _, kind = inner.rpartition(".")
        known = block if kind == "weight" else {}
        if kind == "bias" and biased is not None:
            known = _ATTENTION
        if layer is None and name in _OUTER:
            names[name] = _OUTER[name]
        elif layer is not None and part in known:
            names[name] = f"model.layers.{layer}.{known[part]}.{kind}"
        elif name != ROPE_FACTORS:
            raise ConfigError(f"{file.path}: {file.architecture} has no tensor {name} here")
    missing = sorted(_list_required(file) - names.keys())
    if missing:
        raise ConfigError(f"{file.path}: tensors are missing: {', '.join(missing[:4])}")
    return names


def read_weights(file: GgufFile, dtype: torch.dtype) -> Iterator[tuple[str, torch.Tensor]]:
    """Read the tensors one by one.

    Yields:
        transformers' name, and the tensor.

    Raises:
        ConfigError: a tensor is missing, unknown, or of a quantization that cannot be read.
    """
    heads, kv_heads = read_heads(file)
    for name, published in name_tensors(file).items():
        tensor = torch.from_numpy(file.read(name))
        inner = name.split(".")[-2]
        if file.architecture == _INTERLEAVED and inner in (_QUERIES, _KEYS):
            tensor = _split_pairs(tensor, heads if inner == _QUERIES else kv_heads)
        if file.architecture == _NORMS_FROM_ZERO and name.endswith("norm.weight"):
            tensor = tensor - 1
        yield published, tensor.to(dtype)


def _list_required(file: GgufFile) -> set[str]:
    block = [f"{part}.weight" for part in _BLOCKS[file.architecture]]
    if _BIASED.get(file.architecture):
        block += [f"{part}.bias" for part in (_QUERIES, _KEYS, "attn_v")]
    layers = range(file.own("block_count", int))
    return {EMBEDDING, _NORM, *(f"blk.{layer}.{part}" for layer in layers for part in block)}


def _split_pairs(rows: torch.Tensor, heads: int) -> torch.Tensor:
    """Put the first halves of all pairs before the second ones, in each head.

    Args:
        rows: [H * D, ...].
        heads: H.
    """
    pairs = rows.reshape(heads, -1, 2, *rows.shape[1:])
    return pairs.transpose(1, 2).reshape(rows.shape).contiguous()
