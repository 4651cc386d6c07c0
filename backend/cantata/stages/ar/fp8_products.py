"""Weights in fp8 (E4M3) on a GPU, by vLLM's kernels: half of the memory of 16 bits, and of what a
step has to read.

A weight has one scale for each output, and a row of inputs gets one of its own, so a row's product
does not depend on the other rows' values.

Letters: R rows, I inputs, O outputs.
"""

from __future__ import annotations

import torch
from torch import nn
from vllm.config import get_current_vllm_config
from vllm.model_executor.kernels.linear import init_fp8_linear_kernel
from vllm.model_executor.kernels.linear.scaled_mm import MarlinFP8ScaledMMLinearKernel
from vllm.model_executor.layers.quantization.utils.quant_utils import (
    get_fp8_min_max,
    kFp8DynamicTokenSym,
    kFp8StaticChannelSym,
)
from vllm.platforms import current_platform

from cantata.contract.data.errors import ConfigError

_MIN_SCALE = 1 / 512
"""Of the largest number, as vLLM's own: an output without weights has a scale, too."""


class Fp8Product(nn.Module):
    """[R, I] @ weight.T + bias -> [R, O] in the weight's dtype.

    Args:
        weight: [O, I] bfloat16 or float16, which is not kept.

    Raises:
        ConfigError: vLLM has no kernel for this device.
    """

    def __init__(self, weight: torch.Tensor) -> None:
        super().__init__()
        least, largest = get_fp8_min_max()
        exact = weight.detach().float()
        scale = exact.abs().amax(dim=1, keepdim=True).clamp(min=_MIN_SCALE) / largest
        rounded = (exact / scale).clamp_(least, largest).to(current_platform.fp8_dtype())
        # The names that vLLM's kernels look for.
        self.weight = nn.Parameter(rounded.t(), requires_grad=False)
        self.weight_scale = nn.Parameter(scale, requires_grad=False)
        self.input_scale = self.input_scale_ub = None
        try:
            self._kernel = init_fp8_linear_kernel(
                activation_quant_key=kFp8DynamicTokenSym,
                weight_quant_key=kFp8StaticChannelSym,
                weight_shape=tuple(weight.shape),
                input_dtype=get_current_vllm_config().model_config.dtype,
                out_dtype=weight.dtype,
                module_name=type(self).__name__,
            )
        except ValueError as error:
            raise ConfigError(f"quantization 'fp8': vLLM has no kernel here: {error}") from error
        if isinstance(self._kernel, MarlinFP8ScaledMMLinearKernel):
            raise ConfigError(
                "quantization 'fp8': this GPU multiplies no fp8 (compute 8.9 or more)"
            )
        self._kernel.process_weights_after_loading(self)

    def forward(self, rows: torch.Tensor, bias: torch.Tensor | None = None) -> torch.Tensor:
        product: torch.Tensor = self._kernel.apply_weights(self, rows.contiguous(), bias)
        return product
