"""Float16 weights with float32 activations in vLLM's linear layers on a CPU.

This halves the memory traffic and loses nothing, since a checkpoint is float16. It is exact for any
number of rows: see `networks.packed_product`.
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
    """The quantisation config for vLLM's layers; checkpoints hold nothing of it."""

    def get_name(self) -> str:
        """Returns the name for vLLM's messages."""
        return "half_weights"

    def get_supported_act_dtypes(self) -> list[torch.dtype]:
        """Returns float32 only."""
        return [torch.float32]

    @classmethod
    def get_min_capability(cls) -> int:
        """Returns the minimum GPU capability; no GPU is needed."""
        return 0

    @staticmethod
    def get_config_filenames() -> list[str]:
        """Returns no file names."""
        return []

    @classmethod
    def from_config(cls, config: dict[str, Any]) -> HalfWeights:
        """Ignores the config, which holds nothing."""
        return cls()

    def get_quant_method(self, layer: torch.nn.Module, prefix: str) -> QuantizeMethodBase | None:
        """Returns the method for a linear layer, None for any other layer."""
        return _HalfLinear() if isinstance(layer, LinearBase) else None


class _HalfLinear(UnquantizedLinearMethod):  # type: ignore[misc]
    """Loads like an ordinary layer, then repacks its weights."""

    def process_weights_after_loading(self, layer: Any) -> None:
        layer.product = PackedProduct(layer.weight.data)
        layer.weight = torch.nn.Parameter(layer.weight.new_empty(0), requires_grad=False)

    def apply(self, layer: Any, x: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product: torch.Tensor = layer.product(x)
        return product if bias is None else product + bias


def get_weights(dtype: torch.dtype) -> HalfWeights | None:
    """Returns the quantisation for a backbone that computes in `dtype` on this machine, or None."""
    return HalfWeights() if current_platform.is_cpu() and dtype == torch.float32 else None
