"""Checks that the float32 products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

import torch

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.expert_numerics import ExpertSizes, check_experts
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

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
