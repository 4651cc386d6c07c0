"""Which sizes of heads vLLM's attention for CPUs has kernels for."""

from __future__ import annotations

import torch
from vllm import _custom_ops
from vllm.platforms import current_platform
from vllm.v1.attention.backends.cpu_attn import _get_attn_isa

from cantata.contract.data.errors import ConfigError


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
