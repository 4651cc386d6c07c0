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
TRAINED = "generator."
"""What names begin with in a file that the codec's training saved."""
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
        saved = ((name.removeprefix(TRAINED), each) for name, each in read_pickle(self._path))
        raw = {name: each for name, each in saved if name.startswith(parts)}
        self._tensors = dict(_unfused(dict(_folded(raw))))

    def weights(self, device: torch.device) -> Weights:
        """Hand them out to layers, as float32."""
        return Weights.of(self._tensors.items(), str(self._path), device)

    def __contains__(self, name: str) -> bool:
        return name in self._tensors

    def shape(self, name: str, axes: int) -> tuple[int, ...]:
        """Of a tensor.

        Raises:
            ConfigError: there is none of this name, or it has another number of axes.
        """
        if name not in self._tensors:
            raise ConfigError(f"{self._path}: tensor {name!r} is missing")
        shape = tuple(self._tensors[name].shape)
        if len(shape) != axes:
            raise ConfigError(f"{self._path}: tensor {name!r} must have {axes} axes, not {shape}")
        return shape

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
            ConfigError: it lacks a tensor.
        """
        layer = f"{name}.layers.0"
        inner, hidden = self.shape(f"{layer}.mlp.gate_proj.weight", 2)
        queries, keys = (self.shape(f"{layer}.self_attn.{p}_proj.weight", 2)[0] for p in "qk")
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
            if tensor.ndim < 2 or lengths.numel() != len(tensor):
                raise ConfigError(f"{FILE}: {stem}: a length of each direction, and no other")
            rows = tensor.float().flatten(1)
            lengths = lengths.float().flatten(1) / rows.norm(dim=1, keepdim=True)
            yield f"{stem}.weight", (rows * lengths).view(tensor.shape)


def _unfused(tensors: Mapping[str, torch.Tensor]) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield tensors with the names and parts of a `SlidingTransformer`'s layers."""
    for name, tensor in tensors.items():
        before, found, part = name.rpartition("attention.wqkv")
        if found and part == ".weight":
            for which, rows in _split(name, tensor, tensors.get(f"{before}attention.wo.weight")):
                turned = rows if which == "v" else pairs_as_halves(rows, HEAD_DIM)
                yield f"{before}self_attn.{which}_proj.weight", turned
            continue
        published = next((each for each in RENAMED if name.endswith(f".{each}")), None)
        if published is None:
            yield name, tensor
        else:
            yield name.removesuffix(published) + RENAMED[published], tensor


def _split(
    name: str, fused: torch.Tensor, output: torch.Tensor | None
) -> Iterator[tuple[str, torch.Tensor]]:
    """Yield the projections of queries, keys and values.

    Args:
        name: of the fused tensor.
        fused: [queries + keys + values, inputs].
        output: [inputs, queries], the projection behind the attention.
    """
    queries = 0 if output is None else output.shape[-1]
    keys, rest = divmod(len(fused) - queries, 2)
    if queries < HEAD_DIM or keys < HEAD_DIM or rest or queries % HEAD_DIM or keys % HEAD_DIM:
        raise ConfigError(
            f"{FILE}: {name} of {list(fused.shape)} and attention.wo are not of heads of {HEAD_DIM}"
        )
    yield from zip("qkv", torch.split(fused, [queries, keys, keys]), strict=True)
