"""vLLM's linear layers with products that are exact per row on a CPU in float32.

vLLM's own give a row other bits among other rows, unless all products have eight rows or more: for
one conversation alone, that takes two to three times as long. Where the weights allow it, a few
rows read them in bfloat16, with the same sums.

Letters: N rows, I inputs, O outputs.
"""

from __future__ import annotations

from typing import Any

import torch
from torch import nn
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.vocab_parallel_embedding import (
    UnquantizedEmbeddingMethod,
    VocabParallelEmbedding,
)

from cantata.contract.model.row_products import is_packed
from cantata_layers.few_row_products import FewOrManyRows


class ExactLinearMethod(UnquantizedLinearMethod):  # type: ignore[misc]
    """Multiplies with `FewOrManyRows`."""

    def process_weights_after_loading(self, layer: Any) -> None:
        """Lay out the weights; the layer keeps no others."""
        layer.product = FewOrManyRows(layer.weight)
        layer.weight = nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """[..., I] -> [..., O]."""
        return _multiply(layer, x, bias)


class ExactEmbeddingMethod(UnquantizedEmbeddingMethod):  # type: ignore[misc]
    """Exact products for the scores of tokens. Rows are looked up in the weights as they are."""

    def process_weights_after_loading(self, layer: Any) -> None:
        """Leave it to the first product: the embedding of inputs has none."""

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        """[..., I] -> [..., O]."""
        if not hasattr(layer, "product"):
            layer.product = FewOrManyRows(layer.weight)
        return _multiply(layer, x, bias)


def make_products_exact(network: nn.Module) -> bool:
    """Have all products of a network exact per row, before vLLM lays out its loaded weights.

    Returns:
        Whether they are: not on a GPU, not below float32, and not with layers of other kinds.
    """
    layers = [m for m in network.modules() if getattr(m, "quant_method", None) is not None]
    others = any(isinstance(module, nn.Linear) for module in network.modules())
    if others or not all(map(_can_be_exact, layers)):
        return False
    for layer in layers:
        embeds = isinstance(layer, VocabParallelEmbedding)
        layer.quant_method = ExactEmbeddingMethod() if embeds else ExactLinearMethod()
    return True


def _can_be_exact(layer: Any) -> bool:
    plain = type(layer.quant_method) in (UnquantizedLinearMethod, UnquantizedEmbeddingMethod)
    if not (plain and isinstance(layer, LinearBase | VocabParallelEmbedding)):
        return False
    weight: torch.Tensor = layer.weight
    return weight.dtype == torch.float32 and is_packed(weight)


def _multiply(layer: Any, x: torch.Tensor, bias: torch.Tensor | None) -> torch.Tensor:
    product = layer.product
    assert isinstance(product, FewOrManyRows)
    rows = product(x.reshape(-1, x.shape[-1]), bias)
    return rows.view(*x.shape[:-1], rows.shape[-1])
