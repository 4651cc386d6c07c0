"""Checks that float32 products, those of vLLM's experts too, are exact per row on this machine.

How many rows an expert multiplies depends on which experts the rows beside it use.
"""

from __future__ import annotations

from dataclasses import dataclass

import torch
import vllm.kernels  # noqa: F401 (loads torch.ops._C)
from vllm import _custom_ops as ops

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import AMONG, COUNTS, TYPICAL_ROWS, Products, check_products

KERNEL = "vec"
"""The one that vLLM takes for float32."""


@dataclass(frozen=True, slots=True)
class ExpertSizes:
    """Sizes of a layer of experts."""

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


TALKER_SHAPES = ((1024, 4096), (2048, 1024), (3072, 1024), (1024, 6144), (2048, 2048))
"""(inputs, outputs) in the published talker, its code predictor and projections."""
FRAME_SHAPES = ((1024, 1024), (1024, 3072), (3072, 1024), (1024, 2048), (4096, 1024))
"""Code2wav's products with one row, or a few, per position of a frame."""
WAVE_SHAPES = ((7168, 1536), (3072, 6144), (5376, 768), (2688, 384))
LAST_WAVE_SHAPES = ((672, 96), (672, 1))
"""The products of its last stage, with up to 1,920 rows per frame."""
EXPERTS = ExpertSizes(hidden=1024, inner=384, count=16, used=6)
"""The published talker's, but fewer of them: each is a product of its own."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    products = check_products(
        Products(TALKER_SHAPES),
        Products((*FRAME_SHAPES, *WAVE_SHAPES), codec),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 320, 1920)),
    )
    if not products.exact or not hasattr(torch.ops._C, "cpu_fused_moe"):
        return products
    if differing := check_experts(EXPERTS):
        return NumericsReport(exact=False, found=differing)
    return NumericsReport(exact=True, found=f"{products.found}; vLLM's experts")
