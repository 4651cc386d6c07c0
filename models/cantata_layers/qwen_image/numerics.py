"""Checks that the float32 products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import Products, check_products

SHAPES = ((64, 3072), (3584, 3072), (3072, 3072), (3072, 12288), (12288, 3072), (3072, 64))
"""(inputs, outputs) in the published denoiser."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(SHAPES))
