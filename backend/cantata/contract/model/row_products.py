"""Matrix products whose float32 results for a row do not depend on the other rows, on a CPU.

torch's own product is MKL's, whose kernels add in an order that depends on the number of rows: on
AMD's CPUs below four rows, on Intel's with AVX2 for half of all numbers of rows, however large.
With weights that oneDNN packed once, a row gets the same bits among any number of rows, on AVX2 and
on AVX-512; only a single row of more than a thousand values takes another kernel (AVX-512).

In bfloat16 a product is no more exact than torch's own. It is packed because torch lays out the
weights anew in every call, which costs as much as the product of a few rows.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache

import torch
from torch import nn
from torch.nn import functional

Product = Callable[[torch.Tensor, torch.Tensor | None], torch.Tensor]
"""[R, in] and a bias -> [R, out]."""
TYPICAL_ROWS = 16
"""Number of rows that oneDNN lays out the weights for; any number may be multiplied."""


class RowProduct:
    """[R, in] @ weight.T + bias -> [R, out], exact per row, without gradients.

    Args:
        weight: [out, in] of a dtype that `is_packed`, on the CPU; copied into a new layout, so it
            may change later.
        typical_rows: for which oneDNN lays out the weights.
    """

    def __init__(self, weight: torch.Tensor, typical_rows: int = TYPICAL_ROWS) -> None:
        self._made_of = _identify(weight)
        weight = weight.detach().contiguous()
        self._packed = torch.ops.mkldnn._reorder_linear_weight(weight, typical_rows)

    def is_for(self, weight: torch.Tensor) -> bool:
        """Whether it was made from this tensor in its present state."""
        return self._made_of == _identify(weight)

    def __call__(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        # Always two rows at least: see the kernel for a single one above.
        single = len(rows) == 1
        rows = rows.expand(2, -1).contiguous() if single else rows.contiguous()
        product = torch.ops.mkldnn._linear_pointwise(rows, self._packed, bias, "none", [], "")
        return torch.as_tensor(product[:1] if single else product)


class RowProducts:
    """Products with several weights, each laid out at its first use and after each change."""

    def __init__(self) -> None:
        self._products: dict[int, RowProduct] = {}

    def __call__(
        self, rows: torch.Tensor, weight: torch.Tensor, bias: torch.Tensor | None, key: int = 0
    ) -> torch.Tensor:
        """[..., in] -> [..., out]: exact per row in float32 on a CPU. `key`: tells the weights
        apart."""
        # A GPU's products are not exact per row anyway.
        packed = weight.dtype == rows.dtype and is_packed(weight)
        if not packed or (torch.is_grad_enabled() and (rows.requires_grad or weight.requires_grad)):
            return functional.linear(rows, weight, bias)
        product = self._products.get(key)
        if product is None or not product.is_for(weight):
            product = self._products[key] = RowProduct(weight)
        output = product(rows.reshape(-1, rows.shape[-1]), bias)
        return output.view(*rows.shape[:-1], weight.shape[0])


class RowLinear(nn.Linear):
    """A linear layer that multiplies with `RowProducts`: [..., in_features] -> [...,
    out_features]."""

    def __init__(self, in_features: int, out_features: int, bias: bool = True) -> None:
        super().__init__(in_features, out_features, bias)
        self._products = RowProducts()
        self._other: Product | None = None

    def multiply_by(self, product: Product) -> None:
        """Multiply by this from now on, and give the weight up."""
        self._other = product
        self.weight = nn.Parameter(self.weight.new_empty(0), requires_grad=False)

    def forward(self, input: torch.Tensor) -> torch.Tensor:
        if self._other is None:
            return self._products(input, self.weight, self.bias)
        rows = self._other(input.reshape(-1, self.in_features), self.bias)
        return rows.view(*input.shape[:-1], self.out_features)


def is_packed(weight: torch.Tensor) -> bool:
    """Whether oneDNN has kernels on this machine for a packed weight like this one."""
    if weight.device.type != "cpu":
        return False
    return weight.dtype == torch.float32 or (weight.dtype == torch.bfloat16 and _has_bfloat16())


@cache
def _has_bfloat16() -> bool:
    return bool(torch.ops.mkldnn._is_mkldnn_bf16_supported())


def _identify(tensor: torch.Tensor) -> tuple[int, int]:
    return tensor.data_ptr(), tensor._version
