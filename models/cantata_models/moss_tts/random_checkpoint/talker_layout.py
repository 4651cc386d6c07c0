"""Names and shapes of both talkers' tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_qwen3 import qwen3_tensors
from cantata_layers.random_tensors import TensorSpec, linear, norm, weight

Config = Mapping[str, Any]

STOP_HEAD = "local_text_lm_head.weight"
TEXT_TABLE = "transformer.wte.weight"
"""Nano's; two of its rows are the stop head."""
PEAKY = 2.0
"""Gain of queries and keys. Without it attention is flat and all prompts sound alike."""
LAST_BIAS = 0.3
"""Mean of the bias of a last norm: rows of a head with another mean score higher or lower."""


def _norm(name: str, size: int, bias: float = 0.0) -> Iterator[TensorSpec]:
    yield norm(name, size)
    yield TensorSpec(f"{name}.bias", (size,), 0.2, bias)


def _gpt2_stack(name: str, config: Config, layers: int) -> Iterator[TensorSpec]:
    size, inner = config["n_embd"], config["n_inner"]
    for index in range(layers):
        block = f"{name}.h.{index}"
        yield from _norm(f"{block}.ln_1", size)
        yield from linear(f"{block}.attn.c_attn", size, 3 * size, gain=PEAKY)
        yield from linear(f"{block}.attn.c_proj", size, size)
        yield from _norm(f"{block}.ln_2", size)
        yield from linear(f"{block}.mlp.fc_in", size, inner, gain=2.0)
        yield from linear(f"{block}.mlp.fc_out", inner, size)
    yield from _norm(f"{name}.ln_f", size, bias=LAST_BIAS)


def _frames(config: Config) -> Iterator[TensorSpec]:
    """The local transformer and the tables of codes, which also are heads."""
    gpt2 = config["gpt2_config"]
    yield from _gpt2_stack("local_transformer", gpt2, config["local_transformer_layers"])
    for book, codes in enumerate(config["audio_codebook_sizes"]):
        yield weight(f"audio_embeddings.{book}", codes, gpt2["n_embd"], gain=4.0)


def local_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of Local's checkpoint for its config.json."""
    qwen3 = config["qwen3_config"]
    size = qwen3["hidden_size"]
    yield TensorSpec("transformer.embed_tokens.weight", (qwen3["vocab_size"], size), 1.0)
    yield from qwen3_tensors("transformer", qwen3)
    yield from _frames(config)
    yield TensorSpec(STOP_HEAD, (2, size), 0.3)


def nano_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of Nano's checkpoint for its config.json, without tied heads."""
    gpt2 = config["gpt2_config"]
    yield TensorSpec(TEXT_TABLE, (gpt2["vocab_size"], gpt2["n_embd"]), 0.3)
    yield from _gpt2_stack("transformer", gpt2, gpt2["n_layer"])
    yield from _frames(config)
