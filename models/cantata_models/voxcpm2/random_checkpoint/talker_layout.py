"""The tensors of a talker, named and shaped as published."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from cantata_layers.random_tensors import TensorSpec, linear, norm, weight

Config = dict[str, Any]
PEAK = 1.7
"""Gain of queries and keys: attention that tells positions apart."""


def talker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Return the specifications of the tensors of model.safetensors."""
    lm, encoder, dit = config["lm_config"], config["encoder_config"], config["dit_config"]
    hidden, latent = lm["hidden_size"], config["feat_dim"]
    yield TensorSpec("base_lm.embed_tokens.weight", (lm["vocab_size"], hidden), 1.0)
    for name, layers in (
        ("base_lm", lm["num_hidden_layers"]),
        ("residual_lm", config["residual_lm_num_layers"]),
    ):
        heads = lm["num_attention_heads"]
        yield from _stack(name, config, hidden, lm["intermediate_size"], layers, heads)
    size = encoder["hidden_dim"]
    yield TensorSpec("feat_encoder.special_token", (1, 1, 1, size), 1.0)
    yield from linear("feat_encoder.in_proj", latent, size)
    yield from _local("feat_encoder.encoder", config, encoder)
    yield from _solver("feat_decoder.estimator", config, dit)
    inner = config["scalar_quantization_latent_dim"]
    yield from linear("fsq_layer.in_proj", hidden, inner)
    yield from linear("fsq_layer.out_proj", inner, hidden, gain=2.0)
    yield from linear("enc_to_lm_proj", size, hidden)
    yield from linear("lm_to_dit_proj", hidden, dit["hidden_dim"])
    yield from linear("res_to_dit_proj", hidden, dit["hidden_dim"])
    yield from linear("fusion_concat_proj", 2 * hidden, hidden)
    yield from linear("stop_proj", hidden, hidden)
    yield weight("stop_head", 2, hidden)


def _solver(name: str, config: Config, dit: Config) -> Iterator[TensorSpec]:
    size, latent = dit["hidden_dim"], config["feat_dim"]
    yield from linear(f"{name}.in_proj", latent, size)
    yield from linear(f"{name}.cond_proj", latent, size)
    yield from linear(f"{name}.out_proj", size, latent)
    for embedding in ("time_mlp", "delta_time_mlp"):
        yield from linear(f"{name}.{embedding}.linear_1", size, size)
        yield from linear(f"{name}.{embedding}.linear_2", size, size)
    yield from _local(f"{name}.decoder", config, dit)


def _local(name: str, config: Config, local: Config) -> Iterator[TensorSpec]:
    layers, heads = local["num_layers"], local["num_heads"]
    yield from _stack(name, config, local["hidden_dim"], local["ffn_dim"], layers, heads)


def _stack(
    name: str, config: Config, size: int, inner: int, layers: int, heads: int
) -> Iterator[TensorSpec]:
    lm = config["lm_config"]
    queries, keys = heads * lm["kv_channels"], lm["num_key_value_heads"] * lm["kv_channels"]
    for index in range(layers):
        layer = f"{name}.layers.{index}"
        yield norm(f"{layer}.input_layernorm", size)
        yield weight(f"{layer}.self_attn.q_proj", queries, size, gain=PEAK)
        yield weight(f"{layer}.self_attn.k_proj", keys, size, gain=PEAK)
        yield weight(f"{layer}.self_attn.v_proj", keys, size)
        yield weight(f"{layer}.self_attn.o_proj", size, queries)
        yield norm(f"{layer}.post_attention_layernorm", size)
        yield weight(f"{layer}.mlp.gate_proj", inner, size)
        yield weight(f"{layer}.mlp.up_proj", inner, size)
        yield weight(f"{layer}.mlp.down_proj", size, inner)
    yield norm(f"{name}.norm", size)
