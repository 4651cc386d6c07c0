"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

HEAD_SHAPES = ((32, 1024), (1024, 512), (32, 512), (512, 512), (512, 1536), (512, 32), (1024, 1))
"""(inputs, outputs) of the products around the language model and in the head, as published."""
CODEC_SHAPES = ((32, 512), (512, 1536), (512, 2048), (2048, 512), (3584, 512), (1024, 1536))
"""The codec's products with a few rows per frame."""
LAST_SHAPES = ((512, 256), (192, 32), (32, 64), (192, 1))
"""Those of its last stage, with 480 or 1,920 rows per frame."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(HEAD_SHAPES),
        Products(CODEC_SHAPES, codec, (*COUNTS, 128)),
        Products(LAST_SHAPES, codec, (*COUNTS, 480, 1920)),
    )
