"""Checks that the matrix products are exact per row on this machine, for `cantata doctor`."""

from __future__ import annotations

from cantata.contract.model.numerics import NumericsReport
from cantata_layers.linear import TYPICAL_ROWS
from cantata_layers.numerics import COUNTS, Products, check_products

Shapes = tuple[tuple[int, int], ...]
CODES = 1024
MANY_ROWS = (*COUNTS, 160, 512)
"""A chunk of eight frames has up to 512 positions."""


def check_local() -> NumericsReport:
    """Check products of MOSS-TTS-Local's published shapes."""
    return check_products(
        Products((*_block(2560, 9728), (2560, CODES), (2560, 2))),
        Products((*_block(1280, 5120), *_block(768, 3072)), (TYPICAL_ROWS,), MANY_ROWS),
    )


def check_nano() -> NumericsReport:
    """Check products of MOSS-TTS-Nano's published shapes."""
    return check_products(
        Products((*_block(768, 3072), (768, CODES), (768, 2))),
        Products(_block(256, 1024), (TYPICAL_ROWS,), MANY_ROWS),
    )


def _block(width: int, inner: int) -> Shapes:
    """(inputs, outputs) of attention and perceptron."""
    return ((width, 3 * width), (width, width), (width, inner), (inner, width))
