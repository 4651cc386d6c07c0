"""Names and shapes of a stack of Qwen3 layers."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_tensors import TensorSpec, norm, weight

PEAKY = 3.0
"""Mean of the query and key norms. Without it attention is flat and all prompts sound alike."""


def qwen3_tensors(name: str, config: Mapping[str, Any]) -> Iterator[TensorSpec]:
    """Yield the layers and the last norm of a stack.

    Args:
        name: in front of `.layers` and `.norm`.
        config: the stack's sizes under the names of a Qwen3 config.
    """
    size, inner, head = config["hidden_size"], config["intermediate_size"], config["head_dim"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    for index in range(config["num_hidden_layers"]):
        layer = f"{name}.layers.{index}"
        yield weight(f"{layer}.self_attn.q_proj", queries, size)
        yield weight(f"{layer}.self_attn.k_proj", keys, size)
        yield weight(f"{layer}.self_attn.v_proj", keys, size)
        yield weight(f"{layer}.self_attn.o_proj", size, queries, gain=3.0)
        yield norm(f"{layer}.self_attn.q_norm", head, PEAKY)
        yield norm(f"{layer}.self_attn.k_norm", head, PEAKY)
        yield weight(f"{layer}.mlp.gate_proj", inner, size)
        yield weight(f"{layer}.mlp.up_proj", inner, size)
        yield weight(f"{layer}.mlp.down_proj", size, inner, gain=2.0)
        yield norm(f"{layer}.input_layernorm", size)
        yield norm(f"{layer}.post_attention_layernorm", size)
    yield norm(f"{name}.norm", size)
