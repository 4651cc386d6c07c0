"""Names and shapes of the thinker's tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from cantata_layers.random_qwen3_moe import qwen3_moe_tensors
from cantata_layers.random_tensors import TensorSpec, bias, linear, norm, weight

Config = Mapping[str, Any]


def _layer_norm(name: str, size: int) -> Iterator[TensorSpec]:
    yield norm(name, size)
    yield bias(name, size)


def _convolutions(name: str, channels: int, size: int, mels: int) -> Iterator[TensorSpec]:
    for index, inputs in enumerate((1, channels, channels), start=1):
        yield weight(f"{name}.conv2d{index}", channels, inputs, 3, 3, gain=1.5)
        yield bias(f"{name}.conv2d{index}", channels)
    yield weight(f"{name}.conv_out", size, channels * mels // 8)


def _audio(name: str, config: Config) -> Iterator[TensorSpec]:
    size, inner = config["d_model"], config["encoder_ffn_dim"]
    mels = config["num_mel_bins"]
    yield from _convolutions(name, config["downsample_hidden_size"], size, mels)
    for index in range(config["encoder_layers"]):
        layer = f"{name}.layers.{index}"
        for projection in ("q_proj", "k_proj"):
            yield from linear(f"{layer}.self_attn.{projection}", size, size, gain=2.0)
        for projection in ("v_proj", "out_proj"):
            yield from linear(f"{layer}.self_attn.{projection}", size, size)
        yield from linear(f"{layer}.fc1", size, inner)
        yield from linear(f"{layer}.fc2", inner, size)
        yield from _layer_norm(f"{layer}.self_attn_layer_norm", size)
        yield from _layer_norm(f"{layer}.final_layer_norm", size)
    yield from _layer_norm(f"{name}.ln_post", size)
    yield from linear(f"{name}.proj1", size, size, gain=2.0)
    yield from linear(f"{name}.proj2", size, config["output_dim"], gain=2.0)


def _merger(name: str, norm_size: int, size: int, outputs: int) -> Iterator[TensorSpec]:
    yield from _layer_norm(f"{name}.ln_q", norm_size)
    yield from linear(f"{name}.mlp.0", size, size, gain=2.0)
    yield from linear(f"{name}.mlp.2", size, outputs)


def _vision(name: str, config: Config) -> Iterator[TensorSpec]:
    size, inner, patch = config["hidden_size"], config["intermediate_size"], config["patch_size"]
    channels, frames = config["in_channels"], config["temporal_patch_size"]
    yield weight(f"{name}.patch_embed.proj", size, channels, frames, patch, patch, gain=3.0)
    yield bias(f"{name}.patch_embed.proj", size)
    yield TensorSpec(f"{name}.pos_embed.weight", (config["num_position_embeddings"], size), 0.5)
    for index in range(config["depth"]):
        block = f"{name}.blocks.{index}"
        yield from _layer_norm(f"{block}.norm1", size)
        yield from _layer_norm(f"{block}.norm2", size)
        yield from linear(f"{block}.attn.qkv", size, 3 * size, gain=2.0)
        yield from linear(f"{block}.attn.proj", size, size)
        yield from linear(f"{block}.mlp.linear_fc1", size, inner)
        yield from linear(f"{block}.mlp.linear_fc2", inner, size)
    merged, outputs = size * config["spatial_merge_size"] ** 2, config["out_hidden_size"]
    yield from _merger(f"{name}.merger", size, merged, outputs)
    for index in range(len(config["deepstack_visual_indexes"])):
        yield from _merger(f"{name}.merger_list.{index}", merged, merged, outputs)


def thinker_tensors(config: Config) -> Iterator[TensorSpec]:
    """Yield every tensor of `thinker_config`."""
    text = config["text_config"]
    table = (text["vocab_size"], text["hidden_size"])
    yield from _audio("thinker.audio_tower", config["audio_config"])
    yield from _vision("thinker.visual", config["vision_config"])
    yield TensorSpec("thinker.model.embed_tokens.weight", table, 1.0)
    yield from qwen3_moe_tensors("thinker.model", text)
    yield weight("thinker.lm_head", *table, gain=3.0)
