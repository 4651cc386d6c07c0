"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

TALKER_SHAPES = ((2048, 1024), (1024, 4096), (3072, 1024), (1024, 6144))
"""(inputs, outputs) in the talker of the published 0.6B model."""
FRAME_SHAPES = ((1536, 1024), (1024, 512), (512, 1024), (1024, 4096), (4096, 1024))
"""The codec's products with one row per position of a frame."""
WAVE_SHAPES = ((5376, 768), (2688, 384))
LAST_WAVE_SHAPES = ((672, 96), (672, 1))
"""The products of the codec's last stages, with up to 1,920 rows per frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products((*FRAME_SHAPES, *WAVE_SHAPES), codec),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 320, 1920)),
    )
