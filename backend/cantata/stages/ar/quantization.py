"""A talker's layers in eight bits: the weights that a step reads take less memory and time.

Only the layers of a talker's stacks are quantized. Heads, embeddings and what rows pass once stay
as they are: they take little of a frame's time, and choices hang on small differences of scores.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

import torch
from torch import nn
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod

from cantata.contract.data.errors import ConfigError
from cantata.contract.model.row_products import Product, RowLinear
from cantata.contract.model.talker import Talker
from cantata.stages.ar.fp8_products import Fp8Product
from cantata.stages.ar.int8_products import Int8Product

MakeProduct = Callable[[torch.Tensor], Product]
"""[O, I] weight, which is not kept -> its product."""
INT8 = "int8"
PRODUCTS: Mapping[str, MakeProduct] = {INT8: Int8Product, "fp8": Fp8Product}
"""By the deployment's `quantization`."""


class EightBitLinearMethod(UnquantizedLinearMethod):  # type: ignore[misc]
    """Loads one of vLLM's linear layers like an ordinary one, then quantizes it."""

    def __init__(self, make_product: MakeProduct) -> None:
        super().__init__()
        self.make_product = make_product

    def process_weights_after_loading(self, layer: Any) -> None:
        """Replace the weight; the layer keeps no other."""
        layer.product = self.make_product(layer.weight)
        layer.weight = nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """[..., I] -> [..., O]."""
        rows: torch.Tensor = layer.product(x.reshape(-1, x.shape[-1]), bias)
        return rows.view(*x.shape[:-1], rows.shape[-1])


def quantize_stacks(talker: Talker, quantization: str) -> None:
    """Have the loaded talker's stacks multiply in eight bits, before vLLM lays out its weights.

    Args:
        quantization: of `PRODUCTS`.

    Raises:
        ConfigError: this processor has no such products, or the talker has none to replace.
    """
    if quantization == INT8 and not torch.cpu._is_vnni_supported():
        raise ConfigError("quantization 'int8': this processor has no VNNI instructions")
    assert isinstance(talker, nn.Module)
    make_product = PRODUCTS[quantization]
    layers = list(_find_layers(talker))
    for layer in layers:
        if isinstance(layer, RowLinear):
            layer.multiply_by(make_product(layer.weight))
        else:
            layer.quant_method = EightBitLinearMethod(make_product)
    if not layers:
        where = f"quantization {quantization!r}"
        raise ConfigError(f"{where}: the model has no layers that can be quantized")
    if quantization == INT8 and _is_exact(talker):
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
    return all(method is None or isinstance(method, EightBitLinearMethod) for method in methods)
