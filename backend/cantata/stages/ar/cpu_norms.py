"""vLLM's own kernels for norms, offered to its operators on a CPU too.

vLLM builds them for CPUs, but registers them for its operators on GPUs only; elsewhere a norm is
six torch operations, ten times slower for a few rows. They sum each row independently.
SCOPE: CPU. Remove when vLLM registers them itself.
"""

from __future__ import annotations

import torch
import vllm.kernels  # noqa: F401 (loads torch.ops._C)
from vllm import ir
from vllm.config.kernel import IrOpPriorityConfig, KernelConfig
from vllm.platforms import current_platform

PROVIDER = "cantata_cpu"


def kernel_config(device: str) -> KernelConfig:
    """Which kernels an engine on this device prefers."""
    if device != "cpu":
        return KernelConfig()
    preferred = [PROVIDER]
    return KernelConfig(
        ir_op_priority=IrOpPriorityConfig(rms_norm=preferred, fused_add_rms_norm=preferred)
    )


def _is_plain(weight: torch.Tensor | None, x: torch.Tensor, variance_size: int | None) -> bool:
    return weight is not None and weight.dtype == x.dtype and variance_size is None


@ir.ops.rms_norm.register_impl(  # type: ignore[untyped-decorator]
    PROVIDER,
    supported=current_platform.is_cpu(),
    supports_args=lambda x, weight, epsilon, variance_size=None: _is_plain(
        weight, x, variance_size
    ),
)
def rms_norm(
    x: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> torch.Tensor:
    """[..., D] -> [..., D]: x / rms(x) * weight."""
    normed = torch.empty(x.shape, dtype=x.dtype)
    torch.ops._C.rms_norm(normed, x.contiguous(), weight, epsilon)
    return normed


@ir.ops.fused_add_rms_norm.register_impl(  # type: ignore[untyped-decorator]
    PROVIDER,
    supported=current_platform.is_cpu(),
    supports_args=lambda x, x_residual, weight, epsilon, variance_size=None: (
        _is_plain(weight, x, variance_size) and x.is_contiguous() and x_residual.is_contiguous()
    ),
    inplace=True,
)
def fused_add_rms_norm(
    x: torch.Tensor,
    x_residual: torch.Tensor,
    weight: torch.Tensor | None,
    epsilon: float,
    variance_size: int | None = None,
) -> tuple[torch.Tensor, torch.Tensor]:
    """The sum of both and its norm, [..., D] each, written over `x_residual` and `x`."""
    torch.ops._C.fused_add_rms_norm(x, x_residual, weight, epsilon)
    return x, x_residual
