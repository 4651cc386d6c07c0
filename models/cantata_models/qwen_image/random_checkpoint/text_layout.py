"""Names and shapes of the text encoder's tensors, in the layout in which they are published."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_tensors import TensorSpec, bias, linear, norm, weight

Config = Mapping[str, Any]


def text_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of a text_encoder/ folder."""
    width = config["hidden_size"]
    table = (config["vocab_size"], width)
    yield from _vision("visual", config["vision_config"])
    yield TensorSpec("model.embed_tokens.weight", table, 1.0)
    for number in range(config["num_hidden_layers"]):
        yield from _layer(f"model.layers.{number}", config)
    yield norm("model.norm", width)
    yield weight("lm_head", *table)


def _layer(name: str, config: Config) -> Iterator[TensorSpec]:
    width, inner = config["hidden_size"], config["intermediate_size"]
    head = width // config["num_attention_heads"]
    keys = head * config["num_key_value_heads"]
    yield norm(f"{name}.input_layernorm", width)
    yield from linear(f"{name}.self_attn.q_proj", width, width, gain=2.0)
    yield from linear(f"{name}.self_attn.k_proj", width, keys, gain=2.0)
    yield from linear(f"{name}.self_attn.v_proj", width, keys)
    yield weight(f"{name}.self_attn.o_proj", width, width)
    yield norm(f"{name}.post_attention_layernorm", width)
    yield weight(f"{name}.mlp.gate_proj", inner, width)
    yield weight(f"{name}.mlp.up_proj", inner, width)
    yield weight(f"{name}.mlp.down_proj", width, inner, gain=2.0)


def _vision(name: str, config: Config) -> Iterator[TensorSpec]:
    width, inner, patch = config["hidden_size"], config["intermediate_size"], config["patch_size"]
    frames = config["temporal_patch_size"]
    yield weight(f"{name}.patch_embed.proj", width, 3, frames, patch, patch, gain=3.0)
    for number in range(config["depth"]):
        block = f"{name}.blocks.{number}"
        yield norm(f"{block}.norm1", width)
        yield norm(f"{block}.norm2", width)
        yield from linear(f"{block}.attn.qkv", width, 3 * width, gain=2.0)
        yield from linear(f"{block}.attn.proj", width, width)
        yield from linear(f"{block}.mlp.gate_proj", width, inner)
        yield from linear(f"{block}.mlp.up_proj", width, inner)
        yield from linear(f"{block}.mlp.down_proj", inner, width)
    merged = width * config["spatial_merge_size"] ** 2
    yield norm(f"{name}.merger.ln_q", width)
    yield from linear(f"{name}.merger.mlp.0", merged, merged, gain=2.0)
    yield weight(f"{name}.merger.mlp.2", config["out_hidden_size"], merged)
    yield bias(f"{name}.merger.mlp.2", config["out_hidden_size"])
