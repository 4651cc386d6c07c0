"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

TALKER_SHAPES = ((2048, 512), (512, 2048), (2048, 1024), (4096, 2048), (64, 1024), (1024, 64))
"""(inputs, outputs) between the language models and into the solver of the published model."""
LOCAL_SHAPES = ((1024, 2560), (2048, 1024), (1024, 8192), (4096, 1024))
"""The products within a patch."""
CODEC_SHAPES = ((64, 2048), (1024, 1024), (2048, 3072))
"""The codec's products with a row or a few per latent."""
LARGEST_SHAPE = (4096, 8192)
"""The codec's first stage."""
FEW_COUNTS = (1, 2, 4, 8, 16, 33)
LAST_WAVE_SHAPES = ((32, 32), (224, 1))
"""The products of the codec's last stage, with 7,680 rows per patch."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    codec = (TYPICAL_ROWS,)
    return check_products(
        Products(TALKER_SHAPES),
        Products(LOCAL_SHAPES, counts=(*COUNTS, 10, 22, 88)),
        Products(CODEC_SHAPES, codec),
        Products((LARGEST_SHAPE,), codec, FEW_COUNTS),
        Products(LAST_WAVE_SHAPES, codec, (*COUNTS, 320, 1920)),
    )
