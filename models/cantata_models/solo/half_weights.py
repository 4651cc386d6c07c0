"""Float16 weights under float32 activations in vLLM's linear layers on a CPU.

Half the memory to read, nothing lost (a checkpoint is float16), and exact for any number of rows:
see `networks.packed_product`.
"""

from __future__ import annotations

from typing import Any

import torch
from vllm.model_executor.layers.linear import LinearBase, UnquantizedLinearMethod
from vllm.model_executor.layers.quantization.base_config import (
    QuantizationConfig,
    QuantizeMethodBase,
)
from vllm.platforms import current_platform

from cantata_models.solo.networks.packed_product import PackedProduct


class HalfWeights(QuantizationConfig):  # type: ignore[misc]
    """Passed to vLLM's layers as their quantisation; nothing of it is in a checkpoint."""

    def get_name(self) -> str:
        """For vLLM's messages."""
        return "half_weights"

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        """float32 alone."""
        return [torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        """Of a GPU: none is needed."""
        return 0

    @staticmethod
    def get_config_filenames() -> list[str]:
        """None."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> HalfWeights:
        """From nothing."""
        return cls()

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """How a layer multiplies; None for what is not a linear layer."""
        return _HalfLinear() if isinstance(layer, LinearBase) else None


class _HalfLinear(UnquantizedLinearMethod):  # type: ignore[misc]
    """Loads as an ordinary layer does, then lays its weights out anew."""

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.product = PackedProduct(layer.weight.data)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product: torch.Tensor = layer.product(x)
        return product if bias is None else product + bias


def weights_of(dtype: torch.dtype) -> HalfWeights | None:
    """What the layers of a backbone that computes in `dtype` are given on this machine."""
    return HalfWeights() if current_platform.is_cpu() and dtype == torch.float32 else None
