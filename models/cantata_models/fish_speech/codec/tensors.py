"""Reads codec.pth, which has no configuration: its sizes follow from the shapes.

The names are the Descript Audio Codec's (Kumar et al., 2023) around transformers of the language
model's kind. They are brought to the names of `cantata_layers`: convolutions with their weight norm
folded, projections of queries, keys and values apart.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path

import torch

from cantata.contract.data.errors import ConfigError
from cantata_layers.checkpoint import read_pickle
from cantata_layers.weights import Weights
from cantata_models.fish_speech.networks.rotary import pairs_as_halves

FILE = "codec.pth"
HEAD_DIM = 64
ROPE_THETA = 10_000.0
NORM_EPS = 1e-5
NORMS = (
    (".parametrizations.weight.original0", ".parametrizations.weight.original1"),
    (".weight_g", ".weight_v"),
)
"""How the two tensors of a weight norm are named: lengths, directions."""
RENAMED = {
    "attention.wo.weight": "self_attn.o_proj.weight",
    "feed_forward.w1.weight": "mlp.gate_proj.weight",
    "feed_forward.w2.weight": "mlp.down_proj.weight",
    "feed_forward.w3.weight": "mlp.up_proj.weight",
    "attention_norm.weight": "input_layernorm.weight",
    "ffn_norm.weight": "post_attention_layernorm.weight",
    "attention_layer_scale.gamma": "self_attn_layer_scale.scale",
    "ffn_layer_scale.gamma": "mlp_layer_scale.scale",
}


@dataclass(frozen=True, slots=True)
class TransformerSizes:
    """Implements `cantata_layers.sliding_transformer.SlidingSizes`."""

    hidden_size: int
    layers: int
    heads: int
    kv_heads: int
    intermediate_size: int
    window: int
    head_dim: int = HEAD_DIM
    rope_theta: float = ROPE_THETA
    rms_norm_eps: float = NORM_EPS


class CodecTensors:
    """A codec's tensors under the names of `cantata_layers`.

    Args:
        checkpoint: the folder of codec.pth.
        parts: what names begin with; the others are left out.

    Raises:
        ConfigError: the file is missing or damaged.
    """

    def __init__(self, checkpoint: Path, parts: tuple[str, ...]) -> None:
        self._path = checkpoint / FILE
        raw = {name: each for name, each in read_pickle(self._path) if name.startswith(parts)}
        self._tensors = dict(_unfused(dict(_folded(raw))))

    def weights(self, device: torch.device) -> Weights:
        """Hand them out to layers, as float32."""
        return Weights.of(self._tensors.items(), str(self._path), device)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def shape(self, name: str) -> tuple[int, ...]:
        """Of a tensor.

        Raises:
            ConfigError: there is none of this name.
        """
        if name not in self._tensors:
            raise ConfigError(f"{self._path}: tensor {name!r} is missing")
        return tuple(self._tensors[name].shape)

    def count(self, name: str, rest: str) -> int:
        """How many modules `name`.0, `name`.1, ... with a tensor `rest` there are."""
        index = 0
        while f"{name}.{index}.{rest}" in self._tensors:
            index += 1
        return index

    def transformer(self, name: str, window: int) -> TransformerSizes:
        """Of a transformer.

        Args:
            name: in front of `.layers`.
            window: positions that a position attends to.

        Raises:
            ConfigError: it lacks a tensor, or its width is no multiple of a head.
        """
        layer = f"{name}.layers.0"
        inner, hidden = self.shape(f"{layer}.mlp.gate_proj.weight")
        queries, keys = (self.shape(f"{layer}.self_attn.{p}_proj.weight")[0] for p in "qk")
        if queries % HEAD_DIM or keys % HEAD_DIM:
            raise ConfigError(f"{self._path}: {layer} has heads of another size than {HEAD_DIM}")
        return TransformerSizes(
            hidden_size=hidden,
            layers=self.count(f"{name}.layers", "input_layernorm.weight"),
            heads=queries // HEAD_DIM,
            kv_heads=keys // HEAD_DIM,
            intermediate_size=inner,
            window=window,
        )


def _folded(raw: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors with weight norms folded: each first row's length is the stored one."""
    for name, tensor in raw.items():
        norm = next((pair for pair in NORMS if name.endswith(pair)), None)
        if norm is None:
            yield name, tensor
        elif name.endswith(norm[1]):
            stem = name.removesuffix(norm[1])
            lengths = raw.get(stem + norm[0])
            if lengths is None:
                raise ConfigError(f"{FILE}: tensor {stem + norm[0]!r} is missing")
            rows = tensor.float().flatten(1)
            lengths = lengths.float().flatten(1) / rows.norm(dim=1, keepdim=True)
            yield f"{stem}.weight", (rows * lengths).view(tensor.shape)


def _unfused(tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors with the names and parts of a `SlidingTransformer`'s layers."""
    for name, tensor in tensors.items():
        before, found, part = name.rpartition("attention.wqkv")
        if found and part == ".weight":
            queries = tensors[f"{before}attention.wo.weight"].shape[1]
            keys = (len(tensor) - queries) // 2
            split = zip("qkv", torch.split(tensor, [queries, keys, keys]), strict=True)
            for which, rows in split:
                turned = rows if which == "v" else pairs_as_halves(rows, HEAD_DIM)
                yield f"{before}self_attn.{which}_proj.weight", turned
            continue
        published = next((each for each in RENAMED if name.endswith(f".{each}")), None)
        if published is None:
            yield name, tensor
        else:
            yield name.removesuffix(published) + RENAMED[published], tensor
