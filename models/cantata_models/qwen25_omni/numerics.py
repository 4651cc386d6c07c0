"""Checks that the float32 products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.numerics import Products, check_products

SHAPES = ((3584, 896), (896, 8448))
"""(inputs, outputs) of the published talker's products outside vLLM's layers. The thinker's
head has the first's inputs, and more outputs than are worth a check."""


def check_numerics() -> NumericsReport:
    """Check products with random float32 weights of the published shapes."""
    return check_products(Products(SHAPES))
