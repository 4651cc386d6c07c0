"""Whether vLLM's experts on a CPU give a row the same float32 result in any company.

How many rows an expert multiplies depends on which experts the rows beside it use.

Letters: R rows, H hidden size, I width of an expert, X experts, K of them used by a row.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import vllm.kernels  # noqa: F401 (loads torch.ops._C)
from vllm import _custom_ops as ops

from cantata_layers.numerics import AMONG, COUNTS

KERNEL = "vec"
"""The one that vLLM takes for float32."""


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """Of a layer."""

    hidden: int
    inner: int
    count: int
    used: int


def check_experts(sizes: ExpertSizes) -> str:
    """Compare a row's result among other rows with its result alone.

    Returns:
        The numbers of rows among which it differs, in words; empty: none.
    """
    generator = torch.Generator().manual_seed(0)
    gates = torch.randn(sizes.count, 2 * sizes.inner, sizes.hidden, generator=generator)
    down = torch.randn(sizes.count, sizes.hidden, sizes.inner, generator=generator)
    weights = [ops.cpu_prepack_moe_weight(w / w.shape[2] ** 0.5, KERNEL) for w in (gates, down)]
    rows = torch.randn(AMONG, sizes.hidden, generator=generator)
    chosen = torch.rand(AMONG, sizes.count, generator=generator).topk(sizes.used).indices.int()
    shares = torch.rand(AMONG, sizes.used, generator=generator)

    def first(count: int) -> torch.Tensor:
        output = torch.empty(count, sizes.hidden)
        given = (rows[:count], *weights, None, None, shares[:count], chosen[:count])
        ops.cpu_fused_moe(output, *given, "silu", KERNEL, False)
        return output[0]

    right = first(AMONG)
    differing = [count for count in COUNTS if not torch.equal(first(count), right)]
    if not differing:
        return ""
    return f"experts of {sizes.hidden} x {sizes.inner} with {', '.join(map(str, differing))} rows"
