"""Files of random checkpoints: tensors with the same bits on every machine, and JSON."""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from safetensors.torch import save_file

DRAW_BLOCK = 1 << 20
"""Numbers drawn at a time; bounds the extra memory for a large tensor."""
PEAKY = 3.0
"""Mean of the query and key norms. Without it attention is flat and all prompts sound alike."""


@dataclass(frozen=True, slots=True)
class TensorSpec:
    """One tensor of a checkpoint, drawn as `mean + std * u` with u uniform of variance 1."""

    name: str
    shape: tuple[int, ...]
    std: float
    mean: float = 0.0


def weight(name: str, *shape: int, gain: float = 1.0, fan_in: int | None = None) -> TensorSpec:
    """A matrix or kernel [out, in, ...] whose outputs are `gain` times as large as its inputs."""
    inputs = math.prod(shape[1:]) if fan_in is None else fan_in
    return TensorSpec(f"{name}.weight", shape, gain / math.sqrt(inputs))


def bias(name: str, size: int) -> TensorSpec:
    """A bias large enough to matter."""
    return TensorSpec(f"{name}.bias", (size,), 0.2)


def linear(name: str, inputs: int, outputs: int, gain: float = 1.0) -> Iterable[TensorSpec]:
    """A linear layer with a bias."""
    return weight(name, outputs, inputs, gain=gain), bias(name, outputs)


def conv(
    name: str, inputs: int, outputs: int, kernel: int, gain: float = 1.0
) -> Iterable[TensorSpec]:
    """A one-dimensional convolution with a bias."""
    return weight(name, outputs, inputs, kernel, gain=gain), bias(name, outputs)


def norm(name: str, size: int, mean: float = 1.0) -> TensorSpec:
    """The gain of a normalization, around `mean`."""
    return TensorSpec(f"{name}.weight", (size,), 0.2 * mean, mean)


def draw(spec: TensorSpec, seed: int) -> NDArray[np.float32]:
    """Draw one tensor. It depends only on the seed and its name, not on other tensors.

    NumPy guarantees that RandomState's uniform numbers never change. Scaling them takes one product
    and one sum, so no library's normal distribution, logarithm or summation order is involved.
    """
    source = np.random.RandomState(zlib.crc32(f"{seed}:{spec.name}".encode()))
    size = math.prod(spec.shape)
    values = np.empty(size, np.float32)
    width = spec.std * math.sqrt(12.0)
    for start in range(0, size, DRAW_BLOCK):
        block = source.random_sample(min(DRAW_BLOCK, size - start))
        values[start : start + len(block)] = spec.mean + width * (block - 0.5)
    return values.reshape(spec.shape)


def write_tensors(path: Path, specs: Iterable[TensorSpec], seed: int, dtype: torch.dtype) -> None:
    """Draw tensors and write them as one safetensors file."""
    tensors = {spec.name: torch.from_numpy(draw(spec, seed)).to(dtype) for spec in specs}
    save_file(tensors, path, metadata={"format": "pt"})
    path.chmod(0o644)


def write_json(path: Path, value: Any) -> None:
    """Write indented JSON."""
    path.write_text(json.dumps(value, indent=2) + "\n", encoding="utf-8")


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
