"""Checks that the float32 products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import Products, check_products

SHAPES = ((64, 3584), (3584, 3584), (3584, 512), (3584, 18944), (18944, 3584), (3584, 64))
"""(inputs, outputs) in the published language model and around it."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(SHAPES))
