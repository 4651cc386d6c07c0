"""Checks that the float32 products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import Products, check_products

SHAPES = ((1024, 4096), (2048, 4096))
"""(inputs, outputs): the inputs of both published heads, the only products outside vLLM's layers;
they have more outputs than are worth a check."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights."""
    return check_products(Products(SHAPES))
