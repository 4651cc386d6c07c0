"""Weights in int8 on a CPU: a quarter of float32's memory, and of what a step has to read.

A weight has one scale for each output, and a row of inputs gets one of its own. oneDNN adds the
products as integers, which is exact, so a row has the same bits among any number of rows.

Only the layers of a talker's stacks are quantised. Heads, embeddings and what rows pass once stay
as they are: they take little of a frame's time, and choices hang on small differences of scores.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import torch
from torch import nn
from vllm import _custom_ops
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.row_products import RowLinear
from cantata.contract.model.talker import Talker

_LARGEST = 127


class Int8Product:
    """[R, I] @ weight.T + bias -> [R, O] in the weight's dtype.

    Args:
        weight: [O, I] float32 or bfloat16, which is not kept.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        exact = weight.detach().float()
        # WHY kept: oneDNN's handle has a copy of the weight, but only a pointer to the scales.
        self._scales = exact.abs().amax(dim=1, keepdim=True).clamp(min=1e-30) / _LARGEST
        self._handle = _custom_ops.create_onednn_scaled_mm(
            (exact / self._scales).round().to(torch.int8).t(),
            self._scales,
            weight.dtype,
            dynamic_quant=True,
            use_azp=False,
        )

    def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        quantised, scales, _ = _custom_ops.onednn_scaled_int8_quant(rows.contiguous())
        out = rows.new_empty(len(rows), self._handle.n)
        _custom_ops.onednn_scaled_mm(self._handle, quantised, out, scales, None, None, bias)
        return out


class Int8LinearMethod(UnquantizedLinearMethod):  # type: ignore[misc]
    """Loads one of vLLM's linear layers like an ordinary one, then quantises it."""

    def process_weights_after_loading(self, layer: Any) -> None:
        """Replace the weight; the layer keeps no other."""
        layer.product = Int8Product(layer.weight)
        layer.weight = nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """[..., I] -> [..., O]."""
        rows: torch.Tensor = layer.product(x.reshape(-1, x.shape[-1]), bias)
        return rows.view(*x.shape[:-1], rows.shape[-1])


def quantise_stacks(talker: Talker) -> None:
    """Have the loaded talker's stacks multiply by int8, before vLLM lays out its weights.

    Raises:
        ConfigError: this processor adds no int8 products, or the talker has none to replace.
    """
    if not torch.cpu._is_vnni_supported():
        raise ConfigError("quantization 'int8': this processor has no VNNI instructions")
    assert isinstance(talker, nn.Module)
    layers = list(_find_layers(talker))
    for layer in layers:
        if isinstance(layer, RowLinear):
            layer.multiply_by(Int8Product(layer.weight))
        else:
            layer.quant_method = Int8LinearMethod()
    if not layers:
        raise ConfigError("quantization 'int8': the model has no layers that can be quantised")
    if _is_exact(talker):
        talker.min_rows = 1


def _find_layers(network: nn.Module) -> Iterator[Any]:
    """Yield each linear layer inside a stack of layers once."""
    stacks = (module for module in network.modules() if isinstance(module, nn.ModuleList))
    inside = {id(module): module for stack in stacks for module in stack.modules()}
    for module in inside.values():
        method = getattr(module, "quant_method", None)
        ours = isinstance(module, LinearBase) and isinstance(method, UnquantizedLinearMethod)
        if ours or isinstance(module, RowLinear):
            yield module


def _is_exact(network: nn.Module) -> bool:
    """Whether every product of vLLM's layers adds integers now, so that no row needs company."""
    methods = [getattr(module, "quant_method", None) for module in network.modules()]
    return all(method is None or isinstance(method, Int8LinearMethod) for method in methods)
