"""vLLM's kernels on a CPU: norms, offered to its operators, and which heads it has attention for.

vLLM builds the norms for CPUs, but registers them for its operators on GPUs only; elsewhere a norm
is six torch operations, ten times slower for a few rows. They sum each row independently.
SCOPE: CPU. Remove when vLLM registers them itself.
"""

from __future__ import annotations

import torch
import vllm.kernels  # noqa: F401 (loads torch.ops._C)
from vllm import _custom_ops, ir
from vllm.config.kernel import IrOpPriorityConfig, KernelConfig
from vllm.platforms import current_platform
from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

from cantata.contract.data.errors import ConfigError

PROVIDER = "cantata_cpu"


def kernel_config(device: str) -> KernelConfig:
    """Which kernels an engine on this device prefers."""
    if device != "cpu":
        # WHY: FlashInfer would compile its products to compare them; the image has no compiler.
        return KernelConfig(enable_flashinfer_autotune=False)
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


def check_head_size(size: int, dtype: torch.dtype, block_size: int) -> None:
    """Plan the attention of one position: vLLM itself does not before the first request.

    Args:
        size: of a head.
        dtype: of keys and values.
        block_size: positions of a block.

    Raises:
        ConfigError: there is no kernel for this size.
    """
    current_platform.import_kernels()
    one = torch.ones(1, dtype=torch.int32)
    try:
        _custom_ops.cpu_attn_get_scheduler_metadata(
            num_reqs=1,
            num_heads=1,
            num_kv_heads=1,
            head_dim=size,
            seq_lens=one,
            dtype=dtype,
            query_start_loc=torch.tensor([0, 1], dtype=torch.int32),
            causal=True,
            sliding_window_size=-1,
            isa=_get_attn_isa(dtype, block_size, size),
            enable_kv_split=False,
        )
    except RuntimeError as error:
        raise ConfigError(
            f"heads of {size} channels: vLLM has no attention for them on a CPU (it has for 32, "
            "64, 96, 128 and others)"
        ) from error
