"""Names and shapes of a stack of Qwen3 layers with experts."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_qwen3 import PEAKY
from cantata_layers.random_tensors import TensorSpec, norm, weight


def qwen3_moe_tensors(name: str, config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield the layers and the last norm of a stack, its experts one by one.

    Args:
        name: in front of `.layers` and `.norm`.
        config: the stack's sizes under the names of a Qwen3 config.
    """
    size, head = config["hidden_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    for index in range(config["num_hidden_layers"]):
        layer = f"{name}.layers.{index}"
        yield weight(f"{layer}.self_attn.q_proj", queries, size)
        yield weight(f"{layer}.self_attn.k_proj", keys, size)
        yield weight(f"{layer}.self_attn.v_proj", keys, size)
        yield weight(f"{layer}.self_attn.o_proj", size, queries, gain=3.0)
        yield norm(f"{layer}.self_attn.q_norm", head, PEAKY)
        yield norm(f"{layer}.self_attn.k_norm", head, PEAKY)
        yield from _experts(f"{layer}.mlp", config)
        yield norm(f"{layer}.input_layernorm", size)
        yield norm(f"{layer}.post_attention_layernorm", size)
    yield norm(f"{name}.norm", size)


def _experts(name: str, config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    size, inner = config["hidden_size"], config["moe_intermediate_size"]
    yield weight(f"{name}.gate", config["num_experts"], size, gain=2.0)
    for index in range(config["num_experts"]):
        yield from _perceptron(f"{name}.experts.{index}", size, inner)
    if shared := config.get("shared_expert_intermediate_size"):
        yield from _perceptron(f"{name}.shared_expert", size, shared)
        yield weight(f"{name}.shared_expert_gate", 1, size)


def _perceptron(name: str, size: int, inner: int) -> Iterator[TensorSpec]:
    yield weight(f"{name}.gate_proj", inner, size)
    yield weight(f"{name}.up_proj", inner, size)
    yield weight(f"{name}.down_proj", size, inner, gain=2.0)
