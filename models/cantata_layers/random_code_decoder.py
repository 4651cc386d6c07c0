"""Names and shapes of a decoder of codes: sliding transformer, upsampling, wave stages."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from cantata_layers.random_tensors import TensorSpec, bias, conv, linear, norm, weight

UNITS = 3
"""Residual units of a wave stage."""
OUTPUT_GAIN = 0.05
"""Gain of the last convolution: keeps the wave within -1..1, because clipping would hide faults."""


def scale(name: str, size: int) -> TensorSpec:
    """A layer scale, large enough to matter."""
    return TensorSpec(name, (size,), 0.1, 0.3)


def sliding_transformer(name: str, config: Mapping[str, Any], head: int) -> Iterator[TensorSpec]:
    """Yield the layers and the last norm.

    Args:
        name: in front of `.layers` and `.norm`.
        config: the stack's sizes under their published names.
        head: size of a head.
    """
    size, inner = config["hidden_size"], config["intermediate_size"]
    queries, keys = config["num_attention_heads"] * head, config["num_key_value_heads"] * head
    for index in range(config["num_hidden_layers"]):
        layer = f"{name}.layers.{index}"
        yield weight(f"{layer}.self_attn.q_proj", queries, size, gain=2.0)
        yield weight(f"{layer}.self_attn.k_proj", keys, size, gain=2.0)
        yield weight(f"{layer}.self_attn.v_proj", keys, size)
        yield weight(f"{layer}.self_attn.o_proj", size, queries, gain=3.0)
        yield weight(f"{layer}.mlp.gate_proj", inner, size)
        yield weight(f"{layer}.mlp.up_proj", inner, size)
        yield weight(f"{layer}.mlp.down_proj", size, inner, gain=2.0)
        yield norm(f"{layer}.input_layernorm", size)
        yield norm(f"{layer}.post_attention_layernorm", size)
        yield scale(f"{layer}.self_attn_layer_scale.scale", size)
        yield scale(f"{layer}.mlp_layer_scale.scale", size)
    yield norm(f"{name}.norm", size)


def upsamplers(name: str, size: int, factors: Sequence[int]) -> Iterator[TensorSpec]:
    """Yield the stages that keep the width: a transposed convolution and a ConvNeXt block each."""
    for index, factor in enumerate(factors):
        yield from _upsampler(f"{name}.{index}", size, factor)


def wave_stages(name: str, inputs: int, size: int, rates: Sequence[int]) -> Iterator[TensorSpec]:
    """Yield the widening, the stages that halve the width each, and the last convolution."""
    yield from conv(f"{name}.0.conv", inputs, size, 7)
    for index, rate in enumerate(rates, start=1):
        yield from _wave_stage(f"{name}.{index}", size, rate)
        size //= 2
    last = len(rates) + 1
    yield from _snake(f"{name}.{last}", size)
    yield weight(f"{name}.{last + 1}.conv", 1, size, 7, gain=OUTPUT_GAIN)
    yield TensorSpec(f"{name}.{last + 1}.conv.bias", (1,), 0.01)


def _snake(name: str, size: int) -> Iterator[TensorSpec]:
    yield TensorSpec(f"{name}.alpha", (size,), 0.3)
    yield TensorSpec(f"{name}.beta", (size,), 0.3)


def _upsampler(name: str, size: int, factor: int) -> Iterator[TensorSpec]:
    yield weight(f"{name}.0.conv", size, size, factor, fan_in=size)
    yield bias(f"{name}.0.conv", size)
    block = f"{name}.1"
    yield scale(f"{block}.gamma", size)
    yield from conv(f"{block}.dwconv.conv", 1, size, 7)
    yield norm(f"{block}.norm", size)
    yield bias(f"{block}.norm", size)
    yield from linear(f"{block}.pwconv1", size, 4 * size)
    yield from linear(f"{block}.pwconv2", 4 * size, size, gain=2.0)


def _wave_stage(name: str, size: int, rate: int) -> Iterator[TensorSpec]:
    half = size // 2
    yield from _snake(f"{name}.block.0", size)
    yield weight(f"{name}.block.1.conv", size, half, 2 * rate, fan_in=2 * size)
    yield bias(f"{name}.block.1.conv", half)
    for unit in range(2, 2 + UNITS):
        yield from _snake(f"{name}.block.{unit}.act1", half)
        yield from conv(f"{name}.block.{unit}.conv1.conv", half, half, 7)
        yield from _snake(f"{name}.block.{unit}.act2", half)
        yield from conv(f"{name}.block.{unit}.conv2.conv", half, half, 1, gain=0.4)
