"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

TALKER_SHAPES = ((4096, 2560), (2560, 9728), (9728, 2560), (2560, 4096), (1024, 4096))
"""(inputs, outputs) of the fast stacks and of S2's scores."""
FRAME_SHAPES = ((1024, 3072), (1024, 1024), (1024, 4096), (4096, 1024), (7168, 1536))
"""The codec's products with one row for each position of a frame."""
WAVE_SHAPES = ((3072, 6144), (5376, 768), (2688, 384))
LAST_WAVE_SHAPES = ((672, 96), (672, 1))
"""The products of the codec's last stages, with up to 2,048 rows for each frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products((*FRAME_SHAPES, *WAVE_SHAPES), codec),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 512, 2048)),
    )
